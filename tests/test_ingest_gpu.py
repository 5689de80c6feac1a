"""Ingest on a GPU: cuDF, cudf.pandas, CuPy and cuGraph in, the same graph as on the CPU out."""

import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from graphs import GRAPHS, edge_frames, random_pairs
from hypothesis import given, settings

import glp_rapids
from glp_rapids.device import to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import set_attributes
from glp_rapids.ingest.read import as_graph

pytestmark = [
    pytest.mark.gpu,
    # the RAPIDS libraries warn about each other's deprecations
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def cudf():
    return pytest.importorskip("cudf", reason="cuDF is not installed")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy", reason="CuPy is not installed")


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


def test_sparse_ids_are_ranked_on_the_device(cupy):
    ids = np.random.default_rng(1).integers(-(2**60), 2**60, 5000)
    pairs = [ids[np.array(column)] for column in zip(*random_pairs(5000, 20000, 2), strict=True)]
    graph = as_graph(tuple(cupy.asarray(column) for column in pairs), device="gpu")
    expected = as_graph(tuple(pairs), device="cpu")
    same(graph, expected)
    assert to_host(graph.external().values).tolist() == expected.external().tolist()


# ---------------------------------------------------------------- CuPy in, cuDF out

PAIRS = random_pairs(60, 300, 4)
VARIANTS = {
    "classic": glp_rapids.label_propagation,
    "ids": lambda graph: glp_rapids.label_propagation(graph, renumber=False),
    "layered": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[0, 2]),
    "ordering": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[1], order=True),
    "listener": glp_rapids.speaker_listener,
    "seeded": lambda graph: glp_rapids.seeded_label_propagation(graph, {1: "a", 7: "b"}),
    "core_number": glp_rapids.core_number,
    "trussness": glp_rapids.trussness,
    "ego_networks": lambda graph: glp_rapids.ego_networks(graph, [1, 7]),
    "diversity": lambda graph: glp_rapids.structural_diversity(graph, 2),
    "best": lambda graph: glp_rapids.top_structural_diversity(graph, 3, 2)[1],
    "clusters": lambda graph: glp_rapids.cluster_members(
        graph, [1, 7], minimum_size=2, minimum_partners=1
    ),
    "compressed": lambda graph: glp_rapids.label_propagation(glp_rapids.compress(graph)),
}


def of_cupy(cupy, form):
    source, destination = (np.array(ends) for ends in zip(*PAIRS, strict=True))
    if form == "matrix":
        sparse = pytest.importorskip("cupyx.scipy.sparse")
        ones = cupy.ones(source.size)
        pairs = cupy.asarray(source), cupy.asarray(destination)
        return sparse.coo_matrix((ones, pairs), shape=(60, 60))
    arrays = cupy.asarray(source), cupy.asarray(destination)
    if form == "one of two":
        return arrays[0], destination
    return (*arrays, cupy.ones(source.size)) if form == "weighted" else arrays


def of_the_host(form):
    source, destination = (np.array(ends) for ends in zip(*PAIRS, strict=True))
    if form == "matrix":
        sparse = pytest.importorskip("scipy.sparse")
        return sparse.coo_array((np.ones(source.size), (source, destination)), shape=(60, 60))
    arrays = source, destination
    return (*arrays, np.ones(source.size)) if form == "weighted" else arrays


@pytest.mark.parametrize("form", ["arrays", "weighted", "one of two", "matrix"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_cupy_gives_cudf(variant, form, cupy, cudf):
    call = VARIANTS[variant]
    found, expected = call(of_cupy(cupy, form)), call(of_the_host(form))
    assert isinstance(found, cudf.DataFrame)
    assert type(expected) is pd.DataFrame
    assert list(found.columns) == list(expected.columns)
    host = found.to_pandas()
    for name in expected.columns:
        got, wanted = host[name].astype("object"), expected[name].astype("object")
        assert got.where(got.notna(), None).tolist() == wanted.where(wanted.notna(), None).tolist()
    assert found.attrs.get("glp", {}).keys() == expected.attrs.get("glp", {}).keys()


def test_cupy_gives_cudf_of_a_graph_on_the_host(cupy, cudf):
    graph = as_graph(of_cupy(cupy, "arrays"), device="cpu")
    assert isinstance(graph.indices, np.ndarray)
    assert isinstance(graph.frame({"degree": graph.degree}), cudf.DataFrame)
    assert to_host(graph.vertex_index(cupy.asarray([7, 1]))).tolist() == [7, 1]
    assert to_host(graph.vertex_index([])).tolist() == []


def test_cupy_without_cudf_gives_pandas(cupy, monkeypatch):
    monkeypatch.setattr(kinds, "_cudf_imports", lambda: False)
    for form in ("arrays", "matrix"):
        found = glp_rapids.label_propagation(of_cupy(cupy, form))
        assert type(found) is pd.DataFrame
        expected = glp_rapids.label_propagation(of_the_host(form))
        pd.testing.assert_frame_equal(found, expected)


def test_cupy_results_share_no_memory_with_the_graph(cupy, cudf):
    source, destination = of_cupy(cupy, "arrays")
    graph = as_graph((source, destination))
    found = graph.frame({"indices": graph.indices[:60]})
    found["vertex"].to_cupy(copy=False)[:] = 77
    found["indices"].to_cupy(copy=False)[:] = 77
    assert graph.external().to_pandas().tolist() == list(range(60))
    assert int(graph.indices.max()) == 59
    assert int(source.max()) < 60


def test_hostile_values_on_the_device(cupy, cudf):
    amounts = cudf.Series([decimal.Decimal(1), decimal.Decimal(2)])
    frame = cudf.DataFrame({"src": [1, 2], "dst": [2, 3], "w": amounts})
    with pytest.raises(TypeError, match="weight column 'w' holds decimal"):
        as_graph(frame, weight="w")
    ends = cupy.asarray([1, 2]), cupy.asarray([2, 3])
    masked = np.ma.masked_array([1, 2], [False, True])
    with pytest.raises(ValueError, match=r"weight \(the third\) holds 1 null"):
        as_graph((*ends, masked))
    big = np.array([3, 4], dtype=">f8")
    assert to_host(as_graph((*ends, big)).weights).tolist() == [3, 3, 4, 4]
    with pytest.raises(ValueError, match=r"source \(the first array\) must have one dimension"):
        as_graph((cupy.ones((2, 2), dtype=np.int64), ends[1]))
    for kind in ("f2", "c8", "?"):
        with pytest.raises((TypeError, ValueError), match="source"):
            as_graph((cupy.ones(2, dtype=kind), ends[1]))
        with pytest.raises((TypeError, ValueError), match="vertices"):
            as_graph(ends, vertices=cupy.ones(2, dtype=kind))
    with pytest.raises(TypeError, match="labels of seeds"):
        glp_rapids.seeded_label_propagation(ends, {1: ("a", 1), 2: ("b", 2)})


@pytest.mark.parametrize("kind", [">i4", ">i8", ">f8"])
def test_big_endian_state_goes_to_the_device(kind, cupy):
    class Stated(glp_rapids.Program):
        result_columns = ("mine",)

        def initial_state(self, graph):
            return {"mine": np.array([1, 2, 3], dtype=kind)}

    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 2]})
    found = glp_rapids.propagate(frame, Stated(), device="gpu")
    assert found["mine"].tolist() == [1, 2, 3]


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


def test_nested_ids_are_refused(cudf):
    frame = cudf.DataFrame({"src": [[1], [2]], "dst": [[2], [3]]})
    with pytest.raises(TypeError, match="source column 'src' holds list"):
        as_graph(frame, device="gpu")


# ---------------------------------------------------------------- other tables


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


# ---------------------------------------------------------------- what goes wrong


def test_bad_input_on_the_device(cudf):
    frame = cudf.DataFrame({"src": [1, None, 3], "dst": [1, 2, 3], "w": [1.0, -1.0, 2.0]})
    with pytest.raises(ValueError, match=r"source column 'src' holds 1 null\(s\), .* row 1"):
        as_graph(frame, device="gpu")
    with pytest.raises(ValueError, match=r"weight column 'w' holds 1 negative weight\(s\)"):
        as_graph(frame, source="dst", destination="dst", weight="w", device="gpu")
    with pytest.raises(TypeError, match="'w' holds float64 ids"):
        as_graph(frame, source="w", device="gpu")
    with pytest.raises(ValueError, match="the frame has no column 'payer'"):
        as_graph(frame, source="payer", device="gpu")
    graph = as_graph(frame, source="dst", device="gpu")
    with pytest.raises(ValueError, match=r"seeds holds 1 id\(s\) that are no vertex .*: 9;"):
        graph.vertex_index(cudf.Series([1, 9]), "seeds")


def test_a_lack_of_device_memory_says_what_to_do(cudf, cupy):
    frame = cudf.DataFrame({"src": cupy.arange(2**25), "dst": cupy.arange(2**25)[::-1].copy()})
    cupy.get_default_memory_pool().free_all_blocks()
    held = cupy.empty(cupy.cuda.runtime.memGetInfo()[0] - 2**28, dtype=cupy.uint8)
    with pytest.raises(MemoryError, match=r"33,554,432 edges .* GPU .*GiB are free.*device='cpu'"):
        as_graph(frame, device="gpu")
    assert held.nbytes > 2**28
    del held
    assert as_graph(frame, device="gpu").number_of_vertices == 2**25


def test_data_on_another_gpu_says_where_it_is(cudf, cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    with cupy.cuda.Device(1):
        arrays = cupy.arange(4), cupy.arange(4)[::-1].copy()
    with pytest.raises(ValueError, match=r"lies on GPU 1, but .* GPU 0; .*cupy.cuda.Device\(1\)"):
        as_graph(arrays, device="gpu")
    with cupy.cuda.Device(1):
        assert as_graph(arrays, device="gpu").number_of_vertices == 4


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


def test_cupy_sparse_matrices(cupy):
    cusparse = pytest.importorskip("cupyx.scipy.sparse")
    scipy_sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[0, 1, 0, 0], [0, 0, 2, 0], [4.0, 0, 8, 0], [0, 0, 0, 0]])
    for directed in (True, False):
        graph = as_graph(cusparse.csr_matrix(cupy.asarray(dense)), directed=directed, device="gpu")
        same(graph, as_graph(scipy_sparse.csr_array(dense), directed=directed, device="cpu"))
        assert graph.number_of_vertices == 4


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
