"""A sweep of local moving on CPU cores: class after class, evaluated by all threads, then updated.

What a vertex gains anywhere is judged by the communities as they stand before its class; labels and
volumes are then updated by one thread, which is little work, and all threads wake the neighbours
of those that moved.

Most vertices stay, and most of these are known to without a table: no other community could give
them more than all that they have outside their own. Gains are compared in float64 first, and
without rounding where that leaves a doubt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels.tally import add_up, table_of
from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, Team, together
from glp_rapids.jit.prefetch import prefetch
from glp_rapids.jit.target import cpu_target

U64 = np.uint64
ONE = U64(1)
CHUNK = 256  # vertices that a thread takes at a time
NOWHERE = -1
FAR, NEAR = 16, 8  # how many vertices ahead memory is asked for

gain = cpu_target().compile(rules.gain)
exceeds = cpu_target().compile(rules.exceeds)
first_of_equals = cpu_target().compile(rules.first_of_equals)
waits = cpu_target().compile(rules.waits)

jit = compiled(error_model="numpy")
# A call costs more than most rows: tuples are passed field by field.
inlined = compiled(error_model="numpy", forceinline=True)

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


@kept(error_model="numpy")
def add_up_communities(labels, volume, sizes, volumes):
    """Add up how many vertices each community has, and their volumes."""
    for v in range(labels.size):
        own = U64(labels[v])
        sizes[own] += 1
        volumes[own] += volume[v]


@jit
def _add_crossing_some(thread, threads, level, labels, totals):
    indptr, indices, weights, unit, _, _, _ = level
    vertices, total, weight = labels.size, np.int64(0), unit
    for v in range(vertices * thread // threads, vertices * (thread + 1) // threads):
        place = U64(v)
        own = labels[place]
        for j in range(indptr[place], indptr[place + ONE]):
            if weights.size > 0:
                weight = weights[U64(j)]
            total += weight if labels[U64(indices[U64(j)])] != own else 0
    totals[thread] = total


@ParallelKernel
def add_crossing(team, level, labels, totals):
    """Add up the weight from one community to another, from both ends, by thread."""
    together(team, _add_crossing_some, (team.threads, level, labels, totals))


@inlined
def bounds_of(weight, constant, volume, others):
    """Return two numbers of float64 between which ``weight * constant - volume * others`` lies."""
    for_it, against = np.float64(weight) * constant, np.float64(volume) * others
    error = UNSURE * (for_it + against)
    return for_it - against - error, for_it - against + error


@jit
def compared(weight, others, other_weight, other_others, constant, other_constant, volume):
    """Return 1, 0 or -1: whether one gain of a vertex is greater than another, or as great."""
    high, low = gain(weight, constant, volume, others)
    other_high, other_low = gain(other_weight, other_constant, volume, other_others)
    if high == other_high and low == other_low:
        return 0
    return 1 if exceeds(high, low, other_high, other_low) else -1


@jit
def loses(weight, constant, volume, others):
    """Tell whether a gain is below 0."""
    return gain(weight, constant, volume, others)[0] < 0


@inlined
def _list_others(v, own, level, labels, table):
    """List labels around a vertex but its own, and weights; return how many, and of both sums."""
    indptr, indices, weights, unit, _, _, _ = level
    listed, amounts, _, _, _ = table
    begin, end = indptr[v], indptr[v + ONE]
    count, loops = 0, 0
    if weights.size == 0:
        for j in range(begin, end):
            u = U64(indices[U64(j)])
            label = labels[u]
            listed[U64(count)] = label
            count += label != own
            loops += u == v
        return count, (end - begin - count - loops) * unit, count * unit
    to_own, to_others = np.int64(0), np.int64(0)
    for j in range(begin, end):
        place = U64(j)
        u, weight = U64(indices[place]), weights[place]
        label, place = labels[u], U64(count)
        listed[place] = label
        amounts[place] = weight
        elsewhere = label != own
        count += elsewhere & (weight > 0)
        to_others += weight if elsewhere else 0
        to_own += 0 if elsewhere | (u == v) else weight
    return count, to_own, to_others


@inlined
def best_of(v, level, partition, seed, table):
    """Return the community where a vertex is best, its own unless another is better."""
    _, _, weights, unit, volume, words, constant = level
    labels, sizes, volumes = partition
    listed, _, most, totals, keys = table
    own, mine = np.int64(labels[v]), volume[v]
    count, weight, to_others = _list_others(v, own, level, labels, table)
    best, others = own, volumes[U64(own)] - mine
    limit, _ = bounds_of(weight, constant, mine, others)
    if np.float64(to_others) * constant * (1 + UNSURE) > limit:
        for i in range(count):
            prefetch(volumes, U64(listed[U64(i)]))
        found = add_up(count, unit, weights.size > 0, table)
        for i in range(found):
            slot = U64(listed[U64(i)])
            low, high = bounds_of(totals[slot], constant, mine, volumes[U64(keys[slot])])
            most[U64(i)] = high
            limit = max(limit, low)
        for i in range(found):
            slot = U64(listed[U64(i)])
            to_it = totals[slot]
            totals[slot] = 0
            if most[U64(i)] < limit:
                continue
            label = np.int64(keys[slot])
            there, order = volumes[U64(label)], 0
            if to_it != weight or there != others:
                order = compared(to_it, there, weight, others, constant, constant, mine)
            if order > 0 or (
                order == 0 and best != own and first_of_equals(label, best, seed, words)
            ):
                best, weight, others = label, to_it, there
    if limit < 0 and sizes[v] == 0 and loses(weight, constant, mine, others):
        return np.int64(v)  # better alone, under its own name, which nobody bears
    if best != own and waits(own, best, sizes[U64(own)], sizes[U64(best)]):
        return own
    return best


@inlined
def fetch_rows(position, last, members, level):
    """Have the rows of vertices that come soon fetched: they are far apart in memory."""
    indptr, indices, _, _, _, _, _ = level
    if position + FAR < last:
        prefetch(indptr, U64(members[U64(position + FAR)]))
    if position + NEAR < last:
        prefetch(indices, U64(indptr[U64(members[U64(position + NEAR)])]))


@inlined
def fetch_ahead(position, last, members, level, labels, volumes):
    """Have what is read of vertices that come soon fetched, and of their communities."""
    fetch_rows(position, last, members, level)
    if position + FAR < last:
        v = U64(members[U64(position + FAR)])
        prefetch(level.volume, v)
        prefetch(labels, v)
    if position + NEAR < last:
        prefetch(volumes, U64(labels[U64(members[U64(position + NEAR)])]))


@jit
def _evaluate_some(
    thread, threads, first, last, members, level, partition, seed, active, targets, counts, tables
):
    """Find where the active vertices of a thread's chunks go; list those that move."""
    table = table_of(tables, thread)
    labels, _, volumes = partition
    movers, goals = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        listed = low
        for position in range(low, min(low + CHUNK, last)):
            fetch_ahead(position, last, members, level, labels, volumes)
            v = U64(members[U64(position)])
            if active[v] == 0:
                continue
            active[v] = 0
            best = best_of(v, level, partition, seed, table)
            if best != labels[v]:
                movers[U64(listed)] = v
                goals[U64(listed)] = best
                listed += 1
        counts[U64(chunk)] = listed - low


@jit
def _wake_some(thread, threads, first, last, level, labels, active, targets, counts):
    """Mark the neighbours of the vertices that moved, but for those they moved to."""
    indptr, indices, _, _, _, _, _ = level
    movers, goals = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        end = low + counts[U64(chunk)]
        for position in range(low, end):
            fetch_rows(position, end, movers, level)
            v, goal = U64(movers[U64(position)]), goals[U64(position)]
            for j in range(indptr[v], indptr[v + ONE]):
                u = U64(indices[U64(j)])
                if labels[u] != goal:
                    active[u] = 1


@inlined
def crew(team, vertices, enough):
    """Return the team that goes through so many rows: one thread, if there are not enough."""
    return Team(team.threads, team.parallel_for if vertices >= enough else 0)


@ParallelKernel
def sweep(
    team, class_offsets, members, level, partition, seed, active, targets, counts, tables, share,
    enough,
):  # fmt: skip
    """Update some classes one after the other; return how many vertices moved.

    ``share``: that of active vertices; ``enough``: rows that several threads go through sooner.
    """
    threads = team.threads
    labels, sizes, volumes = partition
    movers, goals = targets
    moved = 0
    for group in range(class_offsets.size - 1):
        first, last = class_offsets[group], class_offsets[group + 1]
        together(crew(team, share * (last - first), enough), _evaluate_some, (
            threads, first, last, members, level, partition, seed, active, targets, counts, tables,
        ))  # fmt: skip
        before = moved
        for chunk in range((last - first + CHUNK - 1) // CHUNK):
            low = first + chunk * CHUNK
            moved += counts[chunk]
            end = low + counts[chunk]
            for position in range(low, end):
                if position + NEAR < end:
                    prefetch(labels, U64(movers[position + NEAR]))
                    prefetch(sizes, U64(goals[position + NEAR]))
                    prefetch(volumes, U64(goals[position + NEAR]))
                v, goal = movers[position], goals[position]
                own = labels[v]
                labels[v] = goal
                sizes[own] -= 1
                sizes[goal] += 1
                volumes[own] -= level.volume[v]
                volumes[goal] += level.volume[v]
        if moved > before:
            together(crew(team, moved - before, enough), _wake_some, (
                threads, first, last, level, labels, active, targets, counts,
            ))  # fmt: skip
    return moved
