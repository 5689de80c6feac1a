"""Cases of lists streamed to a GPU, in groups of those that compile the same kernels."""

from itertools import chain, product

import graphs
import pytest


def needs_gpu(test):
    """Mark a test that compiles no kernel but that of plain votes; one process runs all these."""
    return pytest.mark.xdist_group("classic unit")(pytest.mark.gpu(test))


STREAMED = {"device": "gpu", "way": "streamed plain"}

# A kernel is compiled, for some 20 seconds, for each program, each type of weights, and for readers
# apart from rows. Items say which they compile, so that with `--dist loadgroup` one process does.
WEIGHTED = {
    "integers": ["multi-edges kept", "integer weights"],
    "doubles": ["weighted", "zero weights", "uneven weights"],
    "floats": ["float32 weights"],
    "directed": ["directed", "directed reciprocal", "directed star"],
    "directed doubles": ["directed weighted"],
    "directed integers": ["directed kept"],
}
UNIT = [name for name in graphs.GRAPHS if name not in {*chain(*WEIGHTED.values())}]
BY_KERNEL = {"unit": UNIT, **WEIGHTED}
OF_KERNEL = {"classic": ("classic", "synchronous"), "layered": ("layered", "ordering")}
# Every program, every kind of kernel: whose votes have weights, who wakes whom, is all they share.
KEPT = [
    *[("classic", "unit"), ("classic", "doubles"), ("classic", "directed"), ("layered", "unit")],
    *[("speakers", "directed"), ("seeded", "doubles"), ("wavering", "directed")],
    ("counting", "directed doubles"),
]


def by_kernel(names, programs):
    """Cases of programs and kernels, of which some come by default."""
    cases = [("classic", kernel) for kernel in BY_KERNEL if "classic" in programs]
    others = ["unit", "doubles", "directed", "directed doubles"]
    cases += product([program for program in programs if program != "classic"], others)
    params = []
    for case in cases:
        marks = [pytest.mark.gpu, pytest.mark.xdist_group(" ".join(case))]
        marks += [] if case in KEPT else [pytest.mark.exhaustive]
        params.append(pytest.param(*case, marks=marks))
    return pytest.mark.parametrize(names, params)
