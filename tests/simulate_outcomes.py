"""Run the kernels that pack and unpack outcomes in Numba's simulator; print how many are wrong.

Run by test_outcomes.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

from itertools import product

import numpy as np
from numba import cuda

from glp_rapids.propagation.kernels.gpu import outcomes
from glp_rapids.propagation.kernels.gpu.outcomes import Outcome, Told


def drawn(rng, vertices, index_type, score_type):
    """What one rank has found of everybody, as far as it knows."""
    return Outcome(
        (99 * rng.random(vertices)).astype(score_type),
        rng.integers(-1, 99, vertices).astype(index_type),
        rng.integers(-9, 9, vertices).astype(np.int32),
        rng.integers(0, 2, vertices).astype(np.uint8),
    )  # fmt: skip


def seen_as(message, *types):
    return Outcome(*(message.view(one) for one in (*types, np.int32, np.uint8)))


def main():
    """Let all ranks tell all, and compare with what each has found."""
    rng, wrong = np.random.default_rng(1), 0
    pack, unpack = cuda.jit(outcomes.pack_outcome), cuda.jit(outcomes.unpack_outcome)
    # by class: where the part of each of three ranks begins, and where the last one ends
    cuts = np.array([[0, 5, 5, 12], [12, 15, 20, 20], [20, 20, 20, 20], [20, 27, 30, 33]])
    bounds = np.stack([cuts[:, rank : rank + 2] for rank in range(3)])
    vertices = rng.permutation(33).astype(np.int32)
    for index_type, score_type, scores, slack, classes in product(
        (np.int32, np.int64), (np.int32, np.float64), (False, True), (False, True),
        ((0, 1), (1, 3), (2, 3), (0, 4)),
    ):  # fmt: skip
        told = Told(*map(np.int64, classes), scores, slack)
        types = score_type, index_type
        found = [drawn(rng, 33, index_type, score_type) for _ in bounds]
        kept = [Outcome(*(array.copy() for array in one)) for one in found]
        messages = []
        for rank, one in enumerate(found):
            ends = bounds[rank, slice(*classes)]
            size = outcomes.bytes_told(
                int((ends[:, 1] - ends[:, 0]).sum()), np.dtype(index_type).itemsize, scores, slack
            )
            message = np.zeros(size + 8, np.uint8)  # a view is of one element at least
            pack[2, 4](vertices, bounds, one, seen_as(message, *types), rank, told)
            wrong += message[size:].any()
            messages.append(seen_as(message, *types))
        for rank, one in enumerate(found):
            for other in {0, 1, 2} - {rank}:
                unpack[2, 4](vertices, bounds, one, messages[other], other, told)
            expected = Outcome(*(array.copy() for array in kept[rank]))
            for other, number in product(range(3), range(*classes)):
                at, its = slice(*bounds[other, number]), kept[other]
                expected.winner[at], expected.tied[at] = its.winner[at], its.tied[at]
                if scores:
                    expected.score[at] = its.score[at]
                if slack:
                    expected.slack[vertices[at]] = its.slack[vertices[at]]
            wrong += sum(not np.array_equal(a, b) for a, b in zip(one, expected, strict=True))
    print(int(wrong))


main()
