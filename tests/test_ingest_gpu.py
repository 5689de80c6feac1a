"""Ingest on a GPU: frames of cuDF, cudf.pandas and the host in, the graph as on the CPU out."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from gpu_graphs import MARKS, all_same, as_cudf, same
from graphs import GRAPHS, edge_frames
from hypothesis import given, settings

from glp_rapids.device import to_host
from glp_rapids.frames.facts import set_attributes
from glp_rapids.ingest import rank
from glp_rapids.ingest.read import as_graph

pytestmark = MARKS


@pytest.fixture(
    autouse=True, scope="module", params=[-1, rank.ON_HOST], ids=["there", "on the host"]
)
def ids_that_are_ranked_on_the_host(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank, "ON_HOST", request.param)
        yield


@pytest.mark.parametrize("name", GRAPHS)
def test_pandas_frames_go_to_the_device_and_come_back(name):
    options = GRAPHS[name]()
    graph, expected = as_graph(**options, device="gpu"), as_graph(**options, device="cpu")
    all_same(graph, expected)
    all_same(expected.to("gpu"), expected)
    assert graph.to("cpu").to("gpu") is graph
    frame = graph.frame({"degree": graph.degree})
    pd.testing.assert_frame_equal(frame, expected.frame({"degree": expected.degree}))


@pytest.mark.parametrize("name", GRAPHS)
def test_cudf_frames_in_and_out(name, cudf):
    options = GRAPHS[name]()
    expected = as_graph(**options, device="cpu")
    graph = as_graph(**as_cudf(cudf, options), device="gpu")
    all_same(graph, expected)
    frame = graph.frame({"degree": graph.degree})
    assert isinstance(frame, cudf.DataFrame)
    wanted = expected.frame({"degree": expected.degree})
    pd.testing.assert_frame_equal(frame.to_pandas(), wanted, check_dtype=False)
    assert set_attributes(frame, {"sweeps": 1}).attrs["glp"] == {"sweeps": 1}
    names = [column for column in frame.columns if column != "degree"]
    if len(frame):
        ids = frame[names[0]] if len(names) == 1 else frame[names]
        index = graph.vertex_index(ids)
        assert to_host(index).tolist() == list(range(len(frame)))
        backwards = graph.frame({"x": index[::-1]}, vertex=index[::-1])
        assert backwards["x"].to_pandas().tolist() == list(range(len(frame)))[::-1]


@pytest.mark.parametrize("name", ["strings", "weighted", "directed", "several columns"])
def test_cudf_frames_on_the_cpu_still_give_cudf(name, cudf):
    options = GRAPHS[name]()
    graph = as_graph(**as_cudf(cudf, options), device="cpu")
    expected = as_graph(**options, device="cpu")
    assert graph.indices.tolist() == expected.indices.tolist()
    assert isinstance(graph.frame({"degree": graph.degree}), cudf.DataFrame)


@given(edge_frames())
@settings(max_examples=60, deadline=None)
def test_random_graphs_are_the_same_bit_for_bit(options):
    all_same(as_graph(**options, device="gpu"), as_graph(**options, device="cpu"))


def test_float_sums_are_the_same_bit_for_bit():
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, 200, (2, 200_000))
    for dtype in (np.float32, np.float64):
        weights = (10 ** rng.uniform(-12, 12, pairs.shape[1])).astype(dtype)
        options = {"graph": (*pairs, weights)}
        same(as_graph(**options, device="gpu"), as_graph(**options, device="cpu"))


DAYS = pd.Series(pd.to_datetime(["2024-03-01", "2023-01-01", "2025-01-01", "2020-01-01"]))
IDS = {
    **{name: pd.Series([3, -4, 9, 0], dtype=name) for name in ("int8", "int16", "int32", "int64")},
    **{name: pd.Series([3, 8, 9, 0], dtype=name) for name in ("uint8", "uint16", "uint32")},
    "uint64": pd.Series([3, 2**63, 2**64 - 1, 0], dtype="uint64"),
    "far apart": pd.Series([3, -(2**63), 2**63 - 1, 0]),
    "str": pd.Series(["b", "a", "Z", "é"]),
    "category": pd.Series(["b", "a", "Z", "é"], dtype="category"),
    "category of integers": pd.Series([5, 3, 9, 0], dtype="category"),
    **{
        f"datetime64[{unit}]": DAYS.astype(f"datetime64[{unit}]")
        for unit in ("s", "ms", "us", "ns")
    },
    "timedelta": pd.Series(pd.to_timedelta([3, 1, 7, 0], unit="s")),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_come_back_as_they_went_in(name, cudf):
    ids = cudf.from_pandas(IDS[name])
    frame = cudf.DataFrame({"src": ids, "dst": ids.take([1, 2, 3, 0]).reset_index(drop=True)})
    graph = as_graph(frame, directed=True, vertices=ids, device="gpu")
    got = graph.frame({})["vertex"]
    assert got.dtype == ids.dtype
    values = IDS[name].tolist()
    assert got.to_pandas().tolist() == sorted(values)
    place = [sorted(values).index(value) for value in values]
    assert to_host(graph.vertex_index(ids)).tolist() == place
    # from each value to the next of the four
    expected = [place[(place.index(v) + 1) % 4] for v in range(4)]
    assert to_host(graph.indices).tolist() == expected
    assert to_host(graph.vertex_index(ids[2:])).tolist() == place[2:]


@pytest.mark.parametrize("name", IDS)
def test_a_null_is_reported_with_its_column(name, cudf):
    ids = cudf.from_pandas(IDS[name])
    holed = ids.copy()
    holed.iloc[2] = None
    assert holed.dtype == ids.dtype
    with pytest.raises(ValueError, match=r"destination column 'dst' holds 1 null\(s\), .* row 2;"):
        as_graph(cudf.DataFrame({"src": ids, "dst": holed}), device="gpu")


def test_several_columns_of_every_kind(cudf):
    host = pd.DataFrame({f"src {name}": IDS[name] for name in ("int8", "str", "category")})
    host["src day"] = DAYS
    for name in list(host.columns):
        host[name.replace("src", "dst")] = host[name].iloc[[1, 2, 3, 0]].reset_index(drop=True)
    options = {
        "source": [name for name in host.columns if name.startswith("src")],
        "destination": [name for name in host.columns if name.startswith("dst")],
    }
    frame = cudf.from_pandas(host)
    graph, expected = as_graph(frame, **options), as_graph(host, **options, device="cpu")
    same(graph, expected)
    got = graph.frame({})
    assert list(got.columns) == ["0_vertex", "1_vertex", "2_vertex", "3_vertex"]
    assert [got[name].dtype for name in got.columns] == [
        frame[name].dtype for name in options["source"]
    ]
    assert got.to_pandas().astype("str").equals(expected.frame({}).astype("str"))


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "dask"])
@pytest.mark.parametrize("name", ["strings", "weighted", "directed", "several columns"])
def test_tables_of_the_host_go_to_the_device(kind, name):
    options = GRAPHS[name]()
    make = {
        "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
        "pyarrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame),
        "dask": lambda frame: pytest.importorskip("dask.dataframe").from_pandas(
            frame, npartitions=3
        ),
    }[kind]
    graph = as_graph(**{**options, "graph": make(options["graph"])}, device="gpu")
    same(graph, as_graph(**options, device="cpu"))
    assert type(graph.frame({})) is pd.DataFrame


@pytest.mark.parametrize("name", ["strings", "weighted", "directed", "several columns", "isolated"])
def test_dask_cudf_frames_are_gathered_on_the_device(name, cudf):
    dask_cudf = pytest.importorskip("dask_cudf")
    options = GRAPHS[name]()
    expected = as_graph(**options, device="cpu")
    on_device = as_cudf(cudf, options)
    on_device["graph"] = dask_cudf.from_cudf(on_device["graph"].assign(further=1), npartitions=3)
    graph = as_graph(**on_device, device="gpu")
    all_same(graph, expected)
    assert isinstance(graph.frame({}), cudf.DataFrame)
    column = dask_cudf.from_cudf(graph.frame({}), npartitions=2)
    if "vertex" in column.columns:
        index = graph.vertex_index(column["vertex"])
        assert to_host(index).tolist() == list(range(len(graph.vertices)))


def test_results_share_no_memory_with_the_graph_or_the_input(cudf):
    frame = cudf.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3]})
    graph = as_graph(frame, device="gpu")
    result = graph.frame({"indices": graph.indices[:4]})
    result["vertex"].to_cupy()[:] = 77
    result.loc[0, "indices"] = 77
    result.loc[0, "vertex"] = 77
    assert graph.external().to_pandas().tolist() == [0, 1, 2, 3]
    assert int(graph.indices.max()) == 3
    assert frame.to_pandas()["src"].tolist() == [0, 1, 2]


PROXIES = """
import cudf.pandas
cudf.pandas.install()
import pandas as pd
import glp_rapids
edges = pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]})
found = glp_rapids.label_propagation(edges)
assert hasattr(edges, "as_gpu_object") and hasattr(found, "as_gpu_object")
assert found["vertex"].tolist() == ["a", "b", "c"]
assert found.attrs["glp"]["device"] == "gpu"
import datetime
# dates, which cudf.pandas itself takes for points in time: ids come back as the frame has them
days = [datetime.date(2024, 1, day) for day in (3, 1, 2)]
edges = pd.DataFrame({"src": days[:2], "dst": days[1:]})
found = glp_rapids.label_propagation(edges)
assert found["vertex"].tolist() == sorted({*edges["src"], *edges["dst"]}), found["vertex"]
assert found["vertex"].dtype == edges["src"].dtype, found["vertex"]
try:
    glp_rapids.label_propagation(pd.DataFrame({"src": ["a", 1], "dst": ["b", 2]}))
except TypeError as error:
    assert "source column 'src' mixes types" in str(error), error
else:
    raise AssertionError("mixed ids were taken")
"""


def test_cudf_pandas_proxies_come_back_as_proxies(cudf):
    # cudf.pandas replaces pandas in a whole process, so it gets one of its own
    run = subprocess.run([sys.executable, "-c", PROXIES], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
