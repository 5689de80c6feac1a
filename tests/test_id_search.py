"""Ids found by a table or a search, against a dict; on a GPU in one launch, against these."""

import numpy as np
import pytest

from glp_rapids.device import to_device, to_host
from glp_rapids.graph import vertex_ids
from glp_rapids.graph.vertex_ids import IdColumn

KNOWN = {
    "range": np.arange(50),
    "gaps": np.arange(-40, 90, 3),
    "one": np.array([7], np.int32),
    "beyond int64": np.arange(2**63 - 2, 2**63 + 5, dtype=np.uint64),
    "small type": np.arange(200, 250, dtype=np.uint8),
    "all of a small type": np.arange(-128, 127, 2, dtype=np.int8),
}
TYPES = [np.int8, np.int32, np.int64, np.uint32, np.uint64]


def near_ids(known, dtype):
    can = np.iinfo(dtype)
    near = {int(one) + step for one in (*known[[0, -1]], can.min, can.max) for step in range(-9, 9)}
    return np.array([one for one in near if can.min <= one <= can.max], dtype)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dense", [0, 1 << 40])  # a search for all, a table for all
def test_ids_are_found_as_in_a_dict(name, dtype, dense, monkeypatch):
    monkeypatch.setattr(vertex_ids, "DENSE", dense)
    known, asked = KNOWN[name], near_ids(KNOWN[name], dtype)
    place = {int(one): index for index, one in enumerate(known)}
    found = IdColumn(known, "integer", None).search(asked)
    assert found.dtype == np.int64
    assert found.tolist() == [place.get(int(one), -1) for one in asked]


@pytest.mark.gpu
@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("dtype", TYPES)
def test_ids_are_found_as_on_a_cpu(name, dtype):
    known, asked = KNOWN[name], near_ids(KNOWN[name], dtype)
    expected = IdColumn(known, "integer", None).search(asked)
    there = IdColumn(to_device(known, "gpu"), "integer", None)
    for one in (asked, to_device(asked, "gpu"), asked[:0]):
        found = to_host(there.search(one))
        assert found.dtype == np.int64
        assert np.array_equal(found, expected[: one.size])
