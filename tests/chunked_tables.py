"""Tables to be read in chunks, and what the graphs of them are compared by."""

import pandas as pd
import pytest
from built_graphs import same

from glp_rapids.frames import chunks
from glp_rapids.graph import in_place

TINY = [(chunks, "CHUNK", 3), (in_place, "SMALL", 4), (in_place, "MERGED", 3)]


@pytest.fixture
def tiny(monkeypatch):
    """Chunks, strips and blocks of a few rows, so that a small graph is of many."""
    for module, name, size in TINY:
        monkeypatch.setattr(module, name, size)


def write(frame, folder, files=3):
    """Write a frame as Parquet files; returns the folder."""
    folder.mkdir(exist_ok=True)
    size = max(-(-len(frame) // files), 1)
    for number, begin in enumerate(range(0, max(len(frame), 1), size)):
        part = frame.iloc[begin : begin + size]
        part.to_parquet(folder / f"part-{number:03d}.parquet", index=False)
    return folder


def one_file(frame, folder):
    return next(write(frame, folder, files=1).glob("*.parquet"))


def dask(frame, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


def parts(folder, *frames):
    folder.mkdir(exist_ok=True)
    for number, frame in enumerate(frames):
        pd.DataFrame(frame).to_parquet(folder / f"{number:02d}.parquet", index=False)


GOOD = {"src": [1, 2, 3, 4], "dst": [2, 3, 4, 5], "w": [1.0, 2.0, 3.0, 4.0]}
NULL = {**GOOD, "src": pd.array([1, 2, 3, None], dtype="Int64")}


def identical(graph, expected):
    """Compare everything that a graph is made of."""
    same(graph, expected)
    assert graph.indptr.dtype == expected.indptr.dtype
    assert graph.indices.dtype == expected.indices.dtype
    assert graph.directed == expected.directed
    assert graph.vertices.kind == expected.vertices.kind
    for one, other in zip(graph.vertices.columns, expected.vertices.columns, strict=True):
        assert one.family == other.family
        assert one.values.dtype == other.values.dtype
    pd.testing.assert_frame_equal(graph.frame({}), expected.frame({}))
