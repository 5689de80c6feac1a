"""A sweep of local moving on CPU cores: class after class, evaluated by all threads, then updated.

What a vertex gains anywhere is judged by the communities as they stand before its class; labels and
volumes are then updated by one thread, which is little work, and all threads wake the neighbours
of those that moved.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels.tally import add, clear, table_of
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.target import cpu_target

CHUNK = 256  # vertices that a thread takes at a time
NOWHERE = -1

gain = cpu_target().compile(rules.gain)
exceeds = cpu_target().compile(rules.exceeds)
first_of_equals = cpu_target().compile(rules.first_of_equals)
waits = cpu_target().compile(rules.waits)

jit = compiled(error_model="numpy", _nrt=False)
# A call costs more than most rows: tuples are passed field by field.
inlined = compiled(error_model="numpy", _nrt=False, forceinline=True)

# Of two gains in float64, by what share of the products the lower may be off: 2^-53 each time
# something is rounded, which is five times, and to spare.
UNSURE = 1e-14


class Level(NamedTuple):
    """The rows of a level as kernels take them; see `objective.Network`."""

    indptr: Any
    indices: Any
    weights: Any
    unit: Any
    volume: Any
    words: Any
    constant: Any


class Partition(NamedTuple):
    """Which community each vertex is in; of each community how many vertices, and what volume."""

    labels: Any
    sizes: Any
    volumes: Any


@inlined
def best_of(v, level, partition, seed, table):
    """Return the community where a vertex is best, its own unless another is better."""
    indptr, indices, weights, unit, volume, words, constant = level
    labels, sizes, volumes = partition
    weighted = weights.size > 0
    place = np.uint64(v)
    own, mine = np.int64(labels[place]), volume[place]
    weight = unit
    count = 0
    for j in range(indptr[place], indptr[np.uint64(v + 1)]):
        u = indices[np.uint64(j)]
        if weighted:
            weight = weights[np.uint64(j)]
        if u != v and weight > 0:
            count = add(np.int64(labels[np.uint64(u)]), weight, count, table)
    found, found_weights, _, _, _ = table
    to_own = np.int64(0)
    for entry in range(count):
        if found[np.uint64(entry)] == own:
            to_own = found_weights[np.uint64(entry)]
    best = own
    others = volumes[np.uint64(own)] - mine
    best_high, best_low = gain(to_own, constant, mine, others)
    for_it, against = np.float64(to_own) * constant, np.float64(mine) * others
    surely = for_it - against - UNSURE * (for_it + against)
    for entry in range(count):
        label = found[np.uint64(entry)]
        if label == own:
            continue
        weight, others = found_weights[np.uint64(entry)], volumes[np.uint64(label)]
        for_it, against = np.float64(weight) * constant, np.float64(mine) * others
        error = UNSURE * (for_it + against)
        if for_it - against + error < surely:
            continue
        surely = max(surely, for_it - against - error)
        high, low = gain(weight, constant, mine, others)
        if exceeds(high, low, best_high, best_low):
            best, best_high, best_low = label, high, low
        elif (
            best != own
            and high == best_high
            and low == best_low
            and first_of_equals(label, best, seed, words)
        ):
            best = label
    clear(count, table)
    if best_high < 0 and sizes[place] == 0:
        return np.int64(v)  # better alone, under its own name, which nobody bears
    if best != own and waits(own, best, sizes[np.uint64(own)], sizes[np.uint64(best)]):
        return own
    return best


@jit
def _evaluate_some(
    thread, threads, first, last, members, level, partition, seed, active, targets, counts, tables
):
    """Find where the active vertices of a thread's chunks go; list those that move."""
    table = table_of(tables, thread)
    movers, goals = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        listed = low
        for position in range(low, min(low + CHUNK, last)):
            v = members[np.uint64(position)]
            if active[np.uint64(v)] == 0:
                continue
            active[np.uint64(v)] = 0
            best = best_of(v, level, partition, seed, table)
            if best != partition.labels[np.uint64(v)]:
                movers[np.uint64(listed)] = v
                goals[np.uint64(listed)] = best
                listed += 1
        counts[np.uint64(chunk)] = listed - low


@jit
def _wake_some(thread, threads, first, last, level, labels, active, targets, counts):
    """Mark the neighbours of the vertices that moved, but for those they moved to."""
    movers, goals = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        for position in range(low, low + counts[np.uint64(chunk)]):
            v, goal = movers[np.uint64(position)], goals[np.uint64(position)]
            for j in range(level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]):
                u = np.uint64(level.indices[np.uint64(j)])
                if labels[u] != goal:
                    active[u] = 1


@ParallelKernel
def sweep(team, class_offsets, members, level, partition, seed, active, targets, counts, tables):
    """Update some classes one after the other; return how many vertices moved."""
    threads = team.threads
    labels, sizes, volumes = partition
    movers, goals = targets
    moved = 0
    for group in range(class_offsets.size - 1):
        first, last = class_offsets[group], class_offsets[group + 1]
        together(team, _evaluate_some, (
            threads, first, last, members, level, partition, seed, active, targets, counts, tables,
        ))  # fmt: skip
        before = moved
        for chunk in range((last - first + CHUNK - 1) // CHUNK):
            low = first + chunk * CHUNK
            moved += counts[chunk]
            for position in range(low, low + counts[chunk]):
                v, goal = movers[position], goals[position]
                own = labels[v]
                labels[v] = goal
                sizes[own] -= 1
                sizes[goal] += 1
                volumes[own] -= level.volume[v]
                volumes[goal] += level.volume[v]
        if moved > before:
            together(team, _wake_some, (
                threads, first, last, level, labels, active, targets, counts,
            ))  # fmt: skip
    return moved
