"""The kernels of transactions and of induced rows beside what NumPy makes of the same."""

from dataclasses import astuple

import numpy as np

from glp_rapids.common.scans import exclusive_sums, integer_sum, number_where, places_where
from glp_rapids.fraud import ids, pairs
from glp_rapids.fraud.kernels import gpu_transactions as kernels
from glp_rapids.fraud.moved import moved
from glp_rapids.fraud.pairs import Rows
from glp_rapids.graph import subgraph_cpu, subgraph_gpu
from glp_rapids.graph.rows import CSR


def rows_of(rng, size, vertices):
    ends = rng.integers(0, vertices, (2, size)).astype(np.int32)
    return Rows(*ends, rng.integers(0, 1 << 50, size), rng.integers(0, 9, size))


def graph_of(rng, rows, weights):
    degree = rng.integers(0, 9, rows)
    degree[rows // 2 :] *= rng.random(rows - rows // 2) < 0.5
    degree[: min(rows, 1)] = 100  # a hub
    indptr = np.concatenate([[0], np.cumsum(degree)])
    indices = rng.integers(0, rows, indptr[-1]).astype(np.int32)
    return CSR(indptr, indices, weights and rng.integers(1, 9, indices.size).astype(weights))


def differing(on, host, more=()):
    """Name the functions whose results differ from NumPy's.

    ``on`` puts an array where the kernels run, ``host`` brings one back. ``more``: numbers of rows,
    of others and of vertices, beside small ones.
    """
    sizes = [(0, 3, 5), (1, 0, 2), (40, 30, 9), (30, 1, 200), *more]
    found = compared(on, sizes)
    return [name for name, of_gpu, of_numpy in found if not same(of_gpu, of_numpy, host)]


def same(one, other, host):
    """Tell whether results are equal, types and all."""
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other, [host] * len(one)))
    if one is None or other is None or isinstance(one, int):
        return one is other or one == other
    one = host(one)
    return one.dtype == other.dtype and np.array_equal(one, other)


def compared(on, sizes):
    """Give names, what kernels found, and what NumPy did."""
    rng = np.random.default_rng(0)
    for size, others, vertices in sizes:
        rows, more = rows_of(rng, size, vertices), rows_of(rng, others, vertices)
        columns, added = (tuple(map(on, one.columns)) for one in (rows, more))
        which = np.flatnonzero(rng.random(size) < 0.6)
        index = np.cumsum(rng.integers(1, 3, vertices)).astype(np.int32)
        yield "taken", kernels.taken(columns, on(which)), rows[which].columns
        yield "joined", kernels.joined(columns, added), rows.joined(more).columns
        renamed = rows.renamed(index)
        yield (
            "renamed", kernels.renamed(on(index), *columns[:2]),
            (renamed.source, renamed.destination),
        )  # fmt: skip
        for both in (False, True):
            for counts in ((), (rng.integers(0, 9, size),)):
                given = columns[2], *map(on, counts)
                expected = pairs.added_up(rows, 1 << 20, not both, *counts)
                found = kernels.added_up(*columns[:2], both, given)
                of_numpy = tuple(one for one in astuple(expected) if one is not None)
                yield "added_up", found, of_numpy
        old, new = (pairs.added_up(one, 1 << 20, False) for one in (rows, more))
        yield "renamed_keys", kernels.renamed_keys(on(index), on(old.key)), old.renamed(index).key
        to_old, to_new, total = ids.merged_places(old.key, new.key)
        found = kernels.merged_places(on(old.key), on(new.key))
        yield "merged_places", found, (to_old, to_new, total)
        sums = [tuple(on(getattr(one, name)) for name in one.sums) for one in (old, new)]
        united = kernels.merged(on(old.key), sums[0], found[0], on(new.key), sums[1], *found[1:])
        expected = pairs.merged(old, new)
        yield "merged", united, (expected.key, expected.transfers, expected.units)
        place = rng.permutation(2 * size)[:size] - size // 2
        for values in (rng.random(size), rng.random(size) < 0.5):
            found = kernels.moved(on(values), on(place), 2 * size)
            yield "moved", found, moved(values, place, 2 * size)
        changed, versions = rng.integers(0, 9, vertices), np.array([4, 6])
        number = rng.integers(0, 2, size)
        expected = changed.copy()
        for end in (rows.source, rows.destination):
            np.maximum.at(expected, end, versions[number])
        noted = on(changed.copy())
        kernels.note(*columns[:2], on(number), on(versions), noted)
        yield "note", noted, expected
    for rows, weights in ((0, None), (1, np.int64), (40, None), (40, np.float32)):
        graph = graph_of(rng, rows, weights)
        arrays = (None if one is None else on(one) for one in astuple(graph))
        there = CSR(*arrays)
        for share in (0, 0.3, 1):
            kept = np.flatnonzero(rng.random(rows) < share)
            found = subgraph_gpu.induced(there, on(kept))
            expected = subgraph_cpu.induced(graph, kept)
            given = [(one.indptr, one.indices, one.weights) for one in (found, expected)]
            yield "induced", *given
    for size in (0, 1, 31, 256, 1025, 300_000, 1 << 21):
        for values in (
            rng.random(size) < 0.3, rng.integers(-3, 1 << 40, size) * (rng.random(size) < 0.9),
            *(rng.integers(0, 3, size).astype(code) for code in "bBhHiIlLqQ"),
        ):  # fmt: skip
            yield f"exclusive_sums {size}", exclusive_sums(on(values)), exclusive_sums(values)
            yield f"places_where {size}", places_where(on(values)), np.flatnonzero(values)
            yield f"integer_sum {size}", integer_sum(on(values)), int(values.sum())
            yield f"number_where {size}", number_where(on(values)), int(np.count_nonzero(values))
