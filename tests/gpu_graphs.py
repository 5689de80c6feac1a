"""Graphs that are read on a GPU, beside the same edges read on the CPU."""

import pandas as pd
import pytest

from glp_rapids.device import to_host

MARKS = [
    pytest.mark.gpu,
    # the RAPIDS libraries warn about each other's deprecations
    pytest.mark.filterwarnings("default"),
]


def same(on_gpu, on_cpu):
    assert (on_gpu.device, on_cpu.device) == ("gpu", "cpu")
    for name in ("indptr", "indices", "weights"):
        one, other = getattr(on_gpu, name), getattr(on_cpu, name)
        assert (one is None) == (other is None)
        if other is not None:
            assert one.dtype == other.dtype
            assert to_host(one).tobytes() == other.tobytes()


def all_same(on_gpu, on_cpu):
    same(on_gpu, on_cpu)
    for direction in ("in", "out", "both"):
        same(on_gpu.rows(direction), on_cpu.rows(direction))
        same(on_gpu.readers(direction), on_cpu.readers(direction))


def as_cudf(cudf, options):
    options = {**options, "graph": cudf.from_pandas(options["graph"])}
    if isinstance(options.get("vertices"), pd.Series | pd.DataFrame):
        options["vertices"] = cudf.from_pandas(options["vertices"])
    return options
