"""A sweep of refinement on CPU cores (Traag, Waltman, van Eck 2019, algorithm A.2, MergeNodes).

Inside each community vertices start alone, and a lone one may join a part once, if both it and the
part are well connected to the rest. A part is left by nobody: it has several vertices, or one that
is not of the class that is evaluated. So it grows by neighbours only, and stays connected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels.moving import CHUNK, NOWHERE, exceeds, gain, inlined
from glp_rapids.communities.kernels.tally import add, clear, table_of
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.target import cpu_target

draw = cpu_target().compile(rules.draw)
noisy = cpu_target().compile(rules.noisy)

jit = compiled(error_model="numpy", _nrt=False)

JOINED = 255


class Parts(NamedTuple):
    """Which part each vertex is in, the class of each that is alone; of each part its volume, and
    the weight from it to the rest of its community.
    """

    labels: Any
    turns: Any  # JOINED: not alone
    volumes: Any
    outward: Any


@jit
def _weights_inside_some(thread, threads, level, communities, outward):
    """Add up the weights from each vertex to others of its community."""
    weighted = level.weights.size > 0
    vertices = level.indptr.size - 1
    for v in range(vertices * thread // threads, vertices * (thread + 1) // threads):
        own, total, weight = communities[np.uint64(v)], np.int64(0), level.unit
        for j in range(level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]):
            u = level.indices[np.uint64(j)]
            if weighted:
                weight = level.weights[np.uint64(j)]
            if u != v and communities[np.uint64(u)] == own:
                total += weight
        outward[np.uint64(v)] = total


@ParallelKernel
def weights_inside(team, level, communities, outward):
    """Add up the weights from each vertex to others of its community, into ``outward``."""
    together(team, _weights_inside_some, (team.threads, level, communities, outward))


@inlined
def _part_for(v, level, partition, parts, seed, table):
    """Return the part that a lone vertex joins, or NOWHERE."""
    indptr, indices, weights, unit, volume, words, constant = level
    communities, _, volumes = partition
    labels, turns, part_volumes, outward = parts
    turn = turns[np.uint64(v)]
    weighted = weights.size > 0
    place = np.uint64(v)
    own, mine = communities[place], volume[place]
    whole = volumes[np.uint64(own)]
    high, _ = gain(outward[place], constant, mine, whole - mine)
    if high < 0:
        return np.int64(NOWHERE)
    weight = unit
    count = 0
    for j in range(indptr[place], indptr[np.uint64(v + 1)]):
        u = np.uint64(indices[np.uint64(j)])
        if communities[u] != own or turns[u] == turn:  # among the latter is v itself
            continue
        if weighted:
            weight = weights[np.uint64(j)]
        if weight > 0:
            count = add(np.int64(labels[u]), weight, count, table)
    found, found_weights, _, _, _ = table
    best, best_high = np.int64(NOWHERE), np.int64(0)
    best_low = best_drawn = np.uint64(0)
    for entry in range(count):
        label, weight = found[np.uint64(entry)], found_weights[np.uint64(entry)]
        others = part_volumes[np.uint64(label)]
        drawn = draw(words[place], words[np.uint64(label)], seed)
        high, low = gain(weight, noisy(constant, drawn), mine, others)
        if best >= 0 and not exceeds(high, low, best_high, best_low):
            same = high == best_high and low == best_low
            if not same or drawn > best_drawn or (drawn == best_drawn and label > best):
                continue
        if not exceeds(high, low, np.int64(0), np.uint64(0)):  # else the true gain is no less
            true_high, true_low = gain(weight, constant, mine, others)
            if not exceeds(true_high, true_low, np.int64(0), np.uint64(0)):
                continue
        outward_high, _ = gain(outward[np.uint64(label)], constant, others, whole - others)
        if outward_high >= 0:
            best, best_high, best_low, best_drawn = label, high, low, drawn
    clear(count, table)
    return best


@jit
def _evaluate_some(
    thread, threads, first, last, members, level, partition, parts, seed, targets, counts, tables
):  # fmt: skip
    table = table_of(tables, thread)
    movers, goals, _ = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        listed = low
        for position in range(low, min(low + CHUNK, last)):
            v = members[np.uint64(position)]
            if parts.turns[np.uint64(v)] == JOINED:
                continue
            goal = _part_for(v, level, partition, parts, seed, table)
            if goal >= 0:
                movers[np.uint64(listed)] = v
                goals[np.uint64(listed)] = goal
                listed += 1
        counts[np.uint64(chunk)] = listed - low


@jit
def _outward_of_some(
    thread, threads, first, last, level, communities, labels, joined, targets, counts
):
    """Find by how much each vertex that joined a part changes the weight from it to the rest."""
    movers, goals, changes = targets
    weighted = level.weights.size > 0
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        for position in range(low, low + counts[np.uint64(chunk)]):
            v, goal = movers[np.uint64(position)], goals[np.uint64(position)]
            change, weight = np.int64(0), level.unit
            for j in range(level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]):
                u = np.uint64(level.indices[np.uint64(j)])
                if u == np.uint64(v) or communities[u] != communities[np.uint64(v)]:
                    continue
                if weighted:
                    weight = level.weights[np.uint64(j)]
                if labels[u] != goal:
                    change += weight
                elif joined[u] == 0:
                    change -= weight  # of two that join together neither was counted before
            changes[np.uint64(position)] = change


@ParallelKernel
def sweep(
    team, class_offsets, members, level, partition, parts, seed, joined, targets, counts, tables
):  # fmt: skip
    """Let lone vertices of some classes join parts, class after class; return how many did."""
    threads = team.threads
    labels, turns, volumes, outward = parts
    movers, goals, changes = targets
    moved = 0
    for group in range(class_offsets.size - 1):
        first, last = class_offsets[group], class_offsets[group + 1]
        together(team, _evaluate_some, (
            threads, first, last, members, level, partition, parts, seed, targets, counts, tables,
        ))  # fmt: skip
        chunks = (last - first + CHUNK - 1) // CHUNK
        for chunk in range(chunks):
            low = first + chunk * CHUNK
            moved += counts[chunk]
            for position in range(low, low + counts[chunk]):
                v, goal = movers[position], goals[position]
                own = labels[v]
                labels[v] = goal
                joined[v] = 1
                turns[v] = turns[goal] = JOINED
                volumes[own] -= level.volume[v]
                volumes[goal] += level.volume[v]
                outward[own] = 0
        together(team, _outward_of_some, (
            threads, first, last, level, partition.labels, labels, joined, targets, counts,
        ))  # fmt: skip
        for chunk in range(chunks):
            low = first + chunk * CHUNK
            for position in range(low, low + counts[chunk]):
                outward[goals[position]] += changes[position]
                joined[movers[position]] = 0
    return moved
