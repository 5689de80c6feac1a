"""Ids found on a GPU in one launch, against what whole arrays find."""

import numpy as np
import pytest

from glp_rapids.device import to_device, to_host
from glp_rapids.graph.vertex_ids import IdColumn

KNOWN = {
    "range": np.arange(50),
    "gaps": np.arange(-40, 90, 3),
    "one": np.array([7], np.int32),
    "beyond int64": np.arange(2**63 - 2, 2**63 + 5, dtype=np.uint64),
    "small type": np.arange(200, 250, dtype=np.uint8),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint32, np.uint64])
def test_ids_are_found_as_on_a_cpu(name, dtype):
    can, known = np.iinfo(dtype), KNOWN[name]
    near = {int(one) + step for one in (*known[[0, -1]], can.min, can.max) for step in range(-9, 9)}
    asked = np.array([one for one in near if can.min <= one <= can.max], dtype)
    expected = IdColumn(known, "integer", None).search(asked)
    there = IdColumn(to_device(known, "gpu"), "integer", None)
    for one in (asked, to_device(asked, "gpu"), asked[:0]):
        found = to_host(there.search(one))
        assert found.dtype == np.int64
        assert np.array_equal(found, expected[: one.size])
