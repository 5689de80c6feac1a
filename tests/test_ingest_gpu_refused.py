"""Ingest on a GPU: one clear error for what cannot be taken."""

import decimal

import numpy as np
import pytest
from gpu_graphs import MARKS

import glp_rapids
from glp_rapids.device import to_host
from glp_rapids.ingest.read import as_graph

pytestmark = MARKS


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


def test_nested_ids_are_refused(cudf):
    frame = cudf.DataFrame({"src": [[1], [2]], "dst": [[2], [3]]})
    with pytest.raises(TypeError, match="source column 'src' holds list"):
        as_graph(frame, device="gpu")


def test_bad_input_on_the_device(cudf):
    frame = cudf.DataFrame({"src": [1, None, 3], "dst": [1, 2, 3], "w": [1.0, -1.0, 2.0]})
    frame["own"] = frame["dst"]
    with pytest.raises(ValueError, match=r"source column 'src' holds 1 null\(s\), .* row 1"):
        as_graph(frame, device="gpu")
    with pytest.raises(ValueError, match=r"weight column 'w' holds 1 negative weight\(s\)"):
        as_graph(frame, source="own", weight="w", device="gpu")
    with pytest.raises(TypeError, match="'w' holds float64 ids"):
        as_graph(frame, source="w", device="gpu")
    with pytest.raises(ValueError, match="the frame has no column 'payer'"):
        as_graph(frame, source="payer", device="gpu")
    graph = as_graph(frame, source="own", device="gpu")
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
