"""Real graphs: compressed, to a file and back, exactly; and as small as they are to be."""

from functools import partial

import numpy as np
import pytest
from cases import exhaustive, some
from test_compressed_file import assert_same

from glp_rapids import CompressedGraph, as_graph, compress, datasets
from glp_rapids.device import to_host

SCHEMES = ("cgr", "packed", "entropy")


@pytest.mark.parametrize("name", some(datasets.NAMES, "email-Enron", "amlsim-20K_cycle200"))
def test_real_graphs_come_back(name, data, device, tmp_path):
    try:
        edges = datasets.load(name)
    except FileNotFoundError as error:
        pytest.skip(f"not among the graphs here: {error}")
    options = dict(zip(("source", "destination"), edges.columns, strict=False))
    options["weight"] = next((name for name in ("weight", "amount") if name in edges), None)
    graph = as_graph(edges, directed=edges.attrs["directed"], device=device, **options)
    for scheme in SCHEMES:
        make = partial(compress, scheme=scheme, order="degree" if scheme == "cgr" else None)
        compressed = make(graph)
        compressed.save(tmp_path / name)
        opened = CompressedGraph.open(tmp_path / name, device=device)
        assert_same(opened.to_graph(), graph)
        if device == "gpu":
            on_cpu = make(graph, device="cpu").lists
            for part in ("words", "block_bytes", "tables"):
                found = to_host(getattr(compressed.lists, part))
                assert np.array_equal(found, getattr(on_cpu, part)), (scheme, part)


@pytest.mark.parametrize(
    ("name", "scheme", "most"),
    [
        ("uk-2007-100k", "cgr", 2.70),
        ("uk-2007-100k", "entropy", 2.35),
        ("uk-2007-100k", "packed", 1.15 * 2.475),  # of "cgr", lists uncut
        *exhaustive(
            ("cnr-2000", "cgr", 3.45),
            ("cnr-2000", "entropy", 3.0),
            ("cnr-2000", "packed", 1.15 * 3.278),
        ),
    ],
)
def test_web_graphs_are_small(name, scheme, most, data):
    edges = datasets.load(name)
    graph = as_graph(edges[edges["src"] != edges["dst"]], device="cpu")
    assert compress(graph, scheme).stats()["bits_of_lists"] <= most
