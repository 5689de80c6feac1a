"""A sweep of refinement on CPU cores (Traag, Waltman, van Eck 2019, algorithm A.2, MergeNodes).

Inside each community vertices start alone, and a lone one may join a part once, if both it and the
part are well connected to the rest. A part is left by nobody: it has several vertices, or one that
is not of the class that is evaluated. So it grows by neighbours only, and stays connected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels.moving import (
    CHUNK,
    NOWHERE,
    bounds_of,
    compared,
    crew,
    fetch_ahead,
    inlined,
    share_but,
    sign_of,
)
from glp_rapids.communities.kernels.tally import add_up, label_at, table_of
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.prefetch import prefetch
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
        own, total = communities[np.uint64(v)], np.int64(0)
        begin, end = level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]
        if weighted:
            for j in range(begin, end):
                u = level.indices[np.uint64(j)]
                inside = (u != v) & (communities[np.uint64(u)] == own)
                total += level.weights[np.uint64(j)] if inside else 0
        else:
            for j in range(begin, end):
                u = level.indices[np.uint64(j)]
                total += (u != v) & (communities[np.uint64(u)] == own)
            total *= level.unit
        outward[np.uint64(v)] = total


@ParallelKernel
def weights_inside(team, level, communities, outward):
    """Add up the weights from each vertex to others of its community, into ``outward``."""
    together(team, _weights_inside_some, (team.threads, level, communities, outward))


@inlined
def _list_parts(v, level, communities, parts, table):
    """List the parts around a vertex that it may join, and weights; return how many."""
    indptr, indices, weights, _, _, _, _ = level
    labels, turns, _, _ = parts
    listed, amounts = table.listed, table.amounts
    own, turn = communities[np.uint64(v)], turns[np.uint64(v)]
    begin, end = indptr[np.uint64(v)], indptr[np.uint64(v + 1)]
    count = 0
    for j in range(begin, end):
        u = np.uint64(indices[np.uint64(j)])
        listed[np.uint64(count)] = labels[u]
        joins = (communities[u] == own) & (turns[u] != turn)  # v itself has its own turn
        if weights.size > 0:
            weight = weights[np.uint64(j)]
            amounts[np.uint64(count)] = weight
            joins &= weight > 0
        count += joins
    return count


@inlined
def _part_for(v, level, partition, parts, seed, table):
    """Return the part that a lone vertex joins, or NOWHERE."""
    _, _, weights, unit, volume, words, constant = level
    communities, _, volumes = partition
    _, _, part_volumes, outward = parts
    mine, whole = volume[np.uint64(v)], volumes[np.uint64(communities[np.uint64(v)])]
    best = np.int64(NOWHERE)
    if sign_of(outward[np.uint64(v)], constant, mine, whole - mine) < 0:
        return best
    count = _list_parts(v, level, communities, parts, table)
    for i in range(count):
        label = np.uint64(table.listed[np.uint64(i)])
        prefetch(words, label)
        prefetch(part_volumes, label)
    found, by_key = add_up(count, unit, weights.size > 0, table)
    favourite, limit = 0, -np.inf
    for i in range(found):
        slot = np.uint64(table.listed[np.uint64(i)])
        label = np.uint64(label_at(slot, by_key, table))
        lowered = noisy(constant, draw(words[np.uint64(v)], words[label], seed))
        low, high = bounds_of(table.totals[slot], lowered, mine, part_volumes[label])
        table.most[np.uint64(i)] = high
        favourite, limit = i if low > limit else favourite, max(low, limit)
    best_weight = best_others = best_constant = np.int64(0)
    best_drawn, least, most = np.uint64(0), -np.inf, -np.inf
    # the favourite comes first, so that few of the others need a second look
    for turn in range(-1 if found > 1 else 0, found):
        i = favourite if turn < 0 else turn
        slot = np.uint64(table.listed[np.uint64(i)])
        weight = table.totals[slot]
        if turn >= 0:
            table.totals[slot] = 0
            if table.most[np.uint64(i)] < least or (turn == favourite and found > 1):
                continue
        label = label_at(slot, by_key, table)
        others = part_volumes[np.uint64(label)]
        drawn = draw(words[np.uint64(v)], words[np.uint64(label)], seed)
        lowered = noisy(constant, drawn)
        low, high = bounds_of(weight, lowered, mine, others)
        if best >= 0 and low <= most:
            order = compared(
                weight, others, best_weight, best_others, lowered, best_constant, mine
            )
            if order < 0 or (
                order == 0 and (drawn > best_drawn or (drawn == best_drawn and label > best))
            ):
                continue
        # what is taken off makes no gain of a loss
        if low <= 0 and sign_of(weight, constant, mine, others) <= 0:
            continue
        if sign_of(outward[np.uint64(label)], constant, others, whole - others) >= 0:
            best, best_weight, best_others, best_constant = label, weight, others, lowered
            best_drawn, least, most = drawn, low, high
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
            fetch_ahead(position, last, members, level, partition.labels)
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
            own, change, weight = communities[np.uint64(v)], np.int64(0), level.unit
            for j in range(level.indptr[np.uint64(v)], level.indptr[np.uint64(v + 1)]):
                u = np.uint64(level.indices[np.uint64(j)])
                if weighted:
                    weight = level.weights[np.uint64(j)]
                inside = (communities[u] == own) & (u != np.uint64(v))
                change += weight if inside & (labels[u] != goal) else 0
                # of two that join together neither was counted before
                change -= weight if inside & (labels[u] == goal) & (joined[u] == 0) else 0
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
    degree = level.indices.size // labels.size + 1
    share = share_but(turns, JOINED)
    for group in range(class_offsets.size - 1):
        first, last = class_offsets[group], class_offsets[group + 1]
        together(crew(team, share * (last - first) * degree), _evaluate_some, (
            threads, first, last, members, level, partition, parts, seed, targets, counts, tables,
        ))  # fmt: skip
        chunks = (last - first + CHUNK - 1) // CHUNK
        before = moved
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
        together(crew(team, (moved - before) * degree), _outward_of_some, (
            threads, first, last, level, partition.labels, labels, joined, targets, counts,
        ))  # fmt: skip
        for chunk in range(chunks):
            low = first + chunk * CHUNK
            for position in range(low, low + counts[chunk]):
                outward[goals[position]] += changes[position]
                joined[movers[position]] = 0
    return moved
