"""A sweep of refinement on CPU cores (Traag, Waltman, van Eck 2019, algorithm A.2, MergeNodes).

Inside each community vertices start alone, and a lone one may join a part once, if both it and the
part are well connected to the rest. A part is left by nobody: it has several vertices, or one that
is not of the class that is evaluated. So it grows by neighbours only, and stays connected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities import rules
from glp_rapids.communities.kernels.classes import JOINED, mix
from glp_rapids.communities.kernels.moving import (
    CHUNK,
    FAR,
    NEAR,
    NOWHERE,
    ONE,
    U64,
    bounds_of,
    compared,
    crew,
    exceeds,
    fetch_ahead,
    gain,
    inlined,
    loses,
)
from glp_rapids.communities.kernels.tally import add_up, table_of
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.prefetch import prefetch
from glp_rapids.jit.target import cpu_target

noisy = cpu_target().compile(rules.noisy)

jit = compiled(error_model="numpy")


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
    indptr, indices, weights, unit, _, _, _ = level
    vertices = outward.size
    for v in range(vertices * thread // threads, vertices * (thread + 1) // threads):
        place, total, weight = U64(v), np.int64(0), unit
        own = communities[place]
        for j in range(indptr[place], indptr[place + ONE]):
            u = U64(indices[U64(j)])
            if weights.size > 0:
                weight = weights[U64(j)]
            total += weight if (u != place) & (communities[u] == own) else 0
        outward[place] = total


@ParallelKernel
def weights_inside(team, level, communities, outward):
    """Add up the weights from each vertex to others of its community, into ``outward``."""
    together(team, _weights_inside_some, (team.threads, level, communities, outward))


@inlined
def _list_parts(v, level, communities, parts, table):
    """List the parts around a vertex that it may join, and weights; return how many.

    And how many entries are of lone vertices of its class in its community, itself included.
    """
    indptr, indices, weights, _, _, _, _ = level
    labels, turns, _, _ = parts
    listed, amounts, _, _, _ = table
    own, turn, count, beside = communities[v], turns[v], 0, 0
    for j in range(indptr[v], indptr[v + ONE]):
        u, place = U64(indices[U64(j)]), U64(count)
        listed[place] = labels[u]
        inside, same = communities[u] == own, turns[u] == turn  # v itself has its own turn
        joins = inside & (not same)
        beside += inside & same
        if weights.size > 0:
            weight = weights[U64(j)]
            amounts[place] = weight
            joins &= weight > 0
        count += joins
    return count, beside


@inlined
def _part_for(v, level, partition, parts, seed, table):
    """Return the part that a lone vertex joins, or NOWHERE, and the weight from it to the part.

    And whether others of its class may join the same.
    """
    _, _, weights, unit, volume, words, constant = level
    communities, _, volumes = partition
    _, _, part_volumes, outward = parts
    listed, _, bounds, totals, keys = table
    mine, whole = volume[v], volumes[U64(communities[v])]
    best = np.int64(NOWHERE)
    best_weight = best_others = best_constant = np.int64(0)
    if loses(outward[v], constant, mine, whole - mine):
        return best, best_weight, False
    count, beside = _list_parts(v, level, communities, parts, table)
    if count == 0:
        return best, best_weight, False
    for i in range(count):
        label = U64(listed[U64(i)])
        prefetch(words, label)
        prefetch(part_volumes, label)
    found = add_up(count, unit, weights.size > 0, table)
    # the first half of `draw`, which a compiler would do again for each part
    favourite, limit, begun = 0, -np.inf, mix(words[v], seed)
    for i in range(found):
        slot = U64(listed[U64(i)])
        label = U64(keys[slot])
        lowered = noisy(constant, mix(words[label], begun))
        low, high = bounds_of(totals[slot], lowered, mine, part_volumes[label])
        bounds[U64(i)] = high
        favourite, limit = i if low > limit else favourite, max(low, limit)
    best_drawn, limit = U64(0), -np.inf
    # the favourite comes first, so that few of the others need a second look
    for turn in range(-1, found):
        i = favourite if turn < 0 else turn
        slot = U64(listed[U64(i)])
        weight, label = totals[slot], np.int64(keys[slot])
        if turn >= 0:
            totals[slot] = 0
            if turn == favourite or bounds[U64(i)] < limit:
                continue
        others, drawn = part_volumes[U64(label)], mix(words[U64(label)], begun)
        lowered = noisy(constant, drawn)
        if best >= 0:
            order = compared(
                weight, others, best_weight, best_others, lowered, best_constant, mine
            )
            if order < 0 or (
                order == 0 and (drawn > best_drawn or (drawn == best_drawn and label > best))
            ):
                continue
        # what is taken off makes no gain of a loss
        high, low = gain(weight, constant, mine, others)
        if not exceeds(high, low, 0, U64(0)):
            continue
        if not loses(outward[U64(label)], constant, others, whole - others):
            best, best_weight, best_others, best_constant = label, weight, others, lowered
            best_drawn, (limit, _) = drawn, bounds_of(weight, lowered, mine, others)
    return best, best_weight, beside > 0


@jit
def _evaluate_some(
    thread, threads, first, last, members, level, partition, parts, seed, targets, counts, tables
):  # fmt: skip
    """List who of a thread's chunks joins what, and what that adds to the weight from it outward.

    All that the vertex has in its community but what is in the part, which is no longer outward
    either; whom of its own class it meets there is not known yet.
    """
    table = table_of(tables, thread)
    communities, _, volumes = partition
    turns, outward = parts.turns, parts.outward
    movers, goals, changes, meets = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        listed = low
        for position in range(low, min(low + CHUNK, last)):
            fetch_ahead(position, last, members, level, communities, volumes)
            if position + FAR < last:
                v = U64(members[U64(position + FAR)])
                prefetch(turns, v)
                prefetch(outward, v)
                prefetch(level.words, v)
            v = U64(members[U64(position)])
            if turns[v] == JOINED:
                continue
            goal, weight, beside = _part_for(v, level, partition, parts, seed, table)
            if goal >= 0:
                place = U64(listed)
                movers[place], goals[place], meets[place] = v, goal, beside
                changes[place] = outward[v] - 2 * weight
                listed += 1
        counts[U64(chunk)] = listed - low


@jit
def _meet_some(thread, threads, first, last, level, labels, joined, targets, counts):
    """Take off what is between two that join a part together: neither was outward before."""
    indptr, indices, weights, unit, _, _, _ = level
    movers, goals, changes, meets = targets
    for chunk in range(thread, (last - first + CHUNK - 1) // CHUNK, threads):
        low = first + chunk * CHUNK
        end = low + counts[U64(chunk)]
        for position in range(low, end):
            if position + FAR < end and meets[U64(position + FAR)]:
                prefetch(indptr, U64(movers[U64(position + FAR)]))
            if position + NEAR < end and meets[U64(position + NEAR)]:
                prefetch(indices, U64(indptr[U64(movers[U64(position + NEAR)])]))
            if not meets[U64(position)]:
                continue
            v, goal = U64(movers[U64(position)]), goals[U64(position)]
            between, weight = np.int64(0), unit
            for j in range(indptr[v], indptr[v + ONE]):
                u = U64(indices[U64(j)])
                if weights.size > 0:
                    weight = weights[U64(j)]
                between += weight if (labels[u] == goal) & (joined[u] != 0) & (u != v) else 0
            changes[U64(position)] -= between


@ParallelKernel
def sweep(
    team, class_offsets, members, level, partition, parts, seed, joined, targets, counts, tables,
    enough,
):  # fmt: skip
    """Let lone vertices of some classes join parts, class after class; return how many did.

    ``enough``: rows that several threads go through sooner.
    """
    threads = team.threads
    labels, turns, volumes, outward = parts
    movers, goals, changes, _ = targets
    moved = 0
    for group in range(class_offsets.size - 1):
        first, last = class_offsets[group], class_offsets[group + 1]
        together(crew(team, last - first, enough), _evaluate_some, (
            threads, first, last, members, level, partition, parts, seed, targets, counts, tables,
        ))  # fmt: skip
        chunks = (last - first + CHUNK - 1) // CHUNK
        before = moved
        for chunk in range(chunks):
            low = first + chunk * CHUNK
            moved += counts[chunk]
            end = low + counts[chunk]
            for position in range(low, end):
                if position + NEAR < end:
                    prefetch(turns, U64(goals[position + NEAR]))
                    prefetch(volumes, U64(goals[position + NEAR]))
                v, goal = movers[position], goals[position]
                own = labels[v]
                labels[v] = goal
                joined[v] = 1
                turns[v] = turns[goal] = JOINED
                volumes[own] -= level.volume[v]
                volumes[goal] += level.volume[v]
                outward[own] = 0
        together(crew(team, moved - before, enough), _meet_some, (
            threads, first, last, level, labels, joined, targets, counts,
        ))  # fmt: skip
        for chunk in range(chunks):
            low = first + chunk * CHUNK
            end = low + counts[chunk]
            for position in range(low, end):
                if position + NEAR < end:
                    prefetch(outward, U64(goals[position + NEAR]))
                outward[goals[position]] += changes[position]
                joined[movers[position]] = 0
    return moved
