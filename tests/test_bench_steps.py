"""Bench steps: what it makes of the moments that blocks write down."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from glp_rapids.bench import steps


def moments(blocks, number, late):
    """Each step takes 10 us: 1 and 3 of evaluation, 1, 3 of update, 1, 1; one block is ``late``."""
    clock = np.zeros((steps.MOST, blocks, 6), np.int64)
    for step in range(number):
        clock[step] = 1_000_000 + 10_000 * step + np.array([0, 1_000, 4_000, 5_000, 8_000, 9_000])
        clock[step, -1, 2] += late
    return clock


@pytest.mark.parametrize("blocks", [1, 7, 12])
def test_a_row_a_sweep(blocks):
    room = np.zeros((steps.MOST, 12, 6), np.int64).ravel()
    # of 100,000 vertices: 32 classes, 32 again after many changes, 8 after one in ten, 4 after
    # three in a hundred; and settling 8 after one in five, 4 after one in eight
    changes = [90_000, 10_000, 3_000, 20_000, 12_000, 0]
    clock = moments(blocks, 32 + 32 + 8 + 4 + 8 + 4, late=500)
    room[: clock.size] = clock.ravel()
    rows = steps.rows_of(room, changes, 4, 32, 100_000)
    assert [row["steps"] for row in rows] == [32, 32, 8, 4, 8, 4]
    assert [row["changed"] for row in rows] == changes
    for row in rows:
        assert row["long rows, last block"] == pytest.approx(1)
        assert row["last block"] == pytest.approx(4.5)
        assert row["evaluate, median block"] == pytest.approx(4.5 if blocks == 1 else 4)
        assert row["barrier"] == pytest.approx(0.5)
        assert row["update, median block"] == row["last block, update"] == pytest.approx(3)
        assert row["step"] == pytest.approx(9)
        assert row["sweep ms"] == pytest.approx((10 * row["steps"] - 1) / 1e3)


def test_steps_that_nobody_wrote_down_are_left_out():
    clock = moments(3, steps.MOST, late=0)
    rows = steps.rows_of(clock.ravel(), [90_000] * 40, 10, 32, 100_000)
    assert len(rows) == steps.MOST // 32
