"""What the launcher hands over: each parameter as compiled code reads it."""

import re
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from numba import cuda, typeof

from glp_rapids.jit import launch
from glp_rapids.jit.cuda import DeviceArray, compiling, kernel, packed_row


class Inner(NamedTuple):
    count: np.int32
    pair: tuple


GIVEN = (
    True, np.bool_(False), -3, np.int8(-2), np.uint8(200), np.int16(-300), np.uint16(60_000),
    np.int32(-70_000), np.uint32(4_000_000_000), np.uint64(2**63 + 1), 2.5, np.float32(1.5),
    1 - 2j, Inner(np.int32(4), (np.int64(5), 6.0)), (),
)  # fmt: skip
# Bytes of each parameter, and what it is.
READ = [
    (1, 1), (1, 0), (8, -3), (1, -2), (1, 200), (2, -300), (2, 60_000), (4, -70_000),
    (4, 4_000_000_000), (8, 2**63 + 1), (8, 2.5), (4, 1.5), (8, 1.0), (8, -2.0), (4, 4), (8, 5),
    (8, 6.0),
]  # fmt: skip


def write(given, out):
    out[0] = given[0]
    out[1] = given[1]
    out[2] = given[2]
    out[3] = given[3]
    out[4] = given[4]
    out[5] = given[5]
    out[6] = given[6]
    out[7] = given[7]
    out[8] = given[8]
    out[9] = given[9]
    out[10] = given[10]
    out[11] = given[11]
    out[12] = given[12].real
    out[13] = given[12].imag
    out[14] = given[13].count
    out[15] = given[13].pair[0]
    out[16] = given[13].pair[1]


def read(packed, size, like):
    if isinstance(like, float):
        return float(np.frombuffer(packed[:size], {4: np.float32, 8: np.float64}[size])[0])
    return int.from_bytes(packed[:size], "little", signed=like < 0)


def test_parameters_are_those_of_compiled_code(monkeypatch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba.cuda import dispatcher

    current = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    out = np.empty(len(READ))
    with compiling():
        types = typeof(GIVEN), typeof(out)
        code, _ = cuda.compile_ptx(write, types, device=False, cc=(9, 0))
    parameters = re.findall(r"^\s*\.param \.[a-z](\d+)", code, re.M)
    array = DeviceArray.__new__(DeviceArray)
    array.kind, array.packed = "an array", packed_row(1 << 40, 17, 8)
    monkeypatch.setattr(launch, "array_type", lambda: np.ndarray)
    kinds, packed = launch._described((GIVEN, array))
    assert hash(kinds)
    slots = [packed[first : first + 8] for first in range(0, len(packed), 8)]
    assert len(slots) == len(parameters) == len(READ) + 7
    assert [int(bits) // 8 for bits in parameters] == [*(size for size, _ in READ), *[8] * 7]
    for slot, (size, value) in zip(slots, READ, strict=False):
        assert read(slot, size, value) == value
    of_array = [read(slot, 8, 0) for slot in slots[-7:]]
    assert of_array == [0, 0, 17, 8, 1 << 40, 17, 8]


@pytest.mark.parametrize("argument", [None, "text", np.float16(1), np.datetime64("2020-01-01")])
def test_what_no_kernel_takes_is_refused(argument, monkeypatch):
    monkeypatch.setattr(launch, "array_type", lambda: np.ndarray)
    with pytest.raises(TypeError, match="a kernel takes arrays and numbers, not "):
        launch._described((1, argument))


@pytest.mark.gpu
def test_a_gpu_reads_what_was_given(cupy):
    out = cupy.zeros(len(READ))
    launch.launch(kernel(write, "test"), 1, 1, GIVEN, out)
    expected = [float(value) for _, value in READ]
    assert out.tolist() == expected
