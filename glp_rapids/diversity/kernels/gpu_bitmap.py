"""Ego-networks of up to 512 members, or 64 (see `gpu_hubs`): one block each, its adjacency as bits.

A row of bits in shared memory holds whom a member knows. So a degree is a population count, the
triangles over an edge are the population count of two rows' intersection, and peeling to a core or
a truss is looking through the bits until nothing is cleared any more: nothing is sorted, queued or
kept in global memory. For a truss of one level an edge is counted up to what it needs, and looked
at again only if the row of one of its ends lost something. Components need no bits: members are
united as they are found to know each other, and those that already are together are not looked up.

The contexts are those of Huang, Cheng, Li, Qin and Yu, "Top-k structural diversity search in large
networks", VLDB Journal 24 (2015), and of Huang, Huang and Xu, "Truss-based structural diversity
search in large graphs" (TKDE 2020).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.jit.primitives import find_root, inclusive_scan, lower_bound, union, upper_bound

COMPONENT, CORE, TRUSS = range(3)
SCORE, EVERY, MEMBERS = range(3)
# Threads of a block, members of the largest ego-network, blocks a multiprocessor at once (which
# decides how many registers a thread gets).
SIZES = ((32, 128, 28), (256, 512, 4))
THREADS = 256  # of a block of `build_list_by_degree`
NOTHING = np.int32(1 << 30)
# Where a list is so many times as long as the other, the other's members are looked up in it; a
# step of a search costs about as much as reading the next few members.
SCANNED = 8
ONE, ALL = np.uint32(1), np.uint32(0xFFFFFFFF)


@cuda.jit(device=True)
def bits_beyond(rows, member, word, stride):
    """Return one word of a member's row, without those before the member and itself."""
    bits = rows[member * stride + word]
    if word < member >> 5:
        return np.uint32(0)
    if word == member >> 5:
        # shifted twice, since a shift by 32 is not one
        return np.uint32(bits & np.uint32(np.uint32(ALL << np.uint32(member & 31)) << ONE))
    return bits


@cuda.jit(device=True)
def share_lookups(indptr, neighbours, size, sums, partial, thread, threads):
    """Sum up how many lookups every member takes, so that threads can share them evenly."""
    share = (size + threads - 1) // threads
    own = np.int32(0)
    for a in range(thread * share, min((thread + 1) * share, size)):
        v = neighbours[a]
        degree, rest = indptr[v + 1] - indptr[v], size - a - 1
        own += np.int32(degree) if degree <= SCANNED * rest else rest
        sums[a] = own
    partial[thread] = own
    inclusive_scan(partial, thread, threads)
    before = partial[thread] - own
    for a in range(thread * share, min((thread + 1) * share, size)):
        sums[a] += before
    cuda.syncthreads()


@cuda.jit(device=True)
def look_up(indptr, indices, neighbours, size, sums, lookup, root, uniting):
    """Do one lookup: return two members who know each other, the smaller first; else (0, -1).

    When ``uniting``, two that are in one tree of ``root`` need not be looked up, if that costs.
    """
    a = upper_bound(sums, 0, size - 1, lookup)
    i = lookup - sums[a - 1] if a > 0 else lookup
    v = neighbours[a]
    first, last = indptr[v], indptr[v + 1]
    if last - first <= SCANNED * (size - a - 1):
        w = indices[first + i]
        if w > v:
            place = lower_bound(neighbours, a + 1, size, w)
            if place < size and neighbours[place] == w:
                return a, place
    elif not uniting or (
        root[a] != root[a + 1 + i]
        and find_root(root, np.int32(a)) != find_root(root, np.int32(a + 1 + i))
    ):
        place = lower_bound(indices, first, last, neighbours[a + 1 + i])
        if place < last and indices[place] == neighbours[a + 1 + i]:
            return a, a + 1 + i
    return 0, -1


@cuda.jit(device=True)
def drop_members(rows, alive, dropped, size, words, stride, level, changed, least, thread, threads):
    """Clear members who know fewer than ``level`` others; note the least of those who stay."""
    for word in range(thread, words, threads):
        dropped[word] = 0
    cuda.syncthreads()
    smallest = NOTHING
    for a in range(thread, size, threads):
        if (alive[a >> 5] >> np.uint32(a & 31)) & ONE:
            degree = 0
            for word in range(words):
                degree += cuda.popc(rows[a * stride + word] & alive[word])
            if degree < level:
                cuda.atomic.or_(dropped, a >> 5, ONE << np.uint32(a & 31))
                changed[0] = 1
            else:
                smallest = min(smallest, np.int32(degree))
    # once a thread: one word of shared memory takes what many say one after another
    cuda.atomic.min(least, 0, smallest)
    cuda.syncthreads()
    for word in range(thread, words, threads):
        alive[word] &= ALL ^ dropped[word]


@cuda.jit(device=True)
def drop_edges(
    rows, looked_at, losing, size, words, stride, level, enough, changed, least, first, step, word
):  # fmt: skip
    """Clear edges in fewer than ``level`` - 2 triangles; note the least of those that stay.

    Some rows at a time; what is dropped is cleared when all of these have been looked through. Only
    edges of the rows ``looked_at``, those that lose one become ``losing``. Triangles are counted up
    to ``enough``, from near the greater end on, since those who know each other are often near.
    """
    smallest = NOTHING
    for begin in range(0, size, step):
        a = begin + first
        dropped = np.uint32(0)
        if a < size:
            bits = bits_beyond(rows, a, word, stride)
            if not (looked_at[a >> 5] >> np.uint32(a & 31)) & ONE:
                bits = np.uint32(bits & looked_at[word])
            while bits:
                bit = cuda.ffs(bits) - 1
                b = 32 * word + bit
                bits = np.uint32(bits & (bits - ONE))
                support, other = np.int32(0), word
                while True:
                    support += cuda.popc(rows[a * stride + other] & rows[b * stride + other])
                    other = other + 1 if other + 1 < words else 0
                    if other == word or support >= enough:
                        break
                if support < level - 2:
                    dropped = np.uint32(dropped | (ONE << np.uint32(bit)))
                else:
                    smallest = min(smallest, np.int32(support))
        cuda.syncthreads()
        if dropped:
            changed[0] = 1
            cuda.atomic.and_(rows, a * stride + word, np.uint32(ALL ^ dropped))
            cuda.atomic.or_(losing, a >> 5, ONE << np.uint32(a & 31))
            cuda.atomic.or_(losing, word, dropped)
        while dropped:
            b = 32 * word + cuda.ffs(dropped) - 1
            dropped = np.uint32(dropped & (dropped - ONE))
            cuda.atomic.and_(rows, b * stride + (a >> 5), ALL ^ np.uint32(ONE << np.uint32(a & 31)))
        cuda.syncthreads()
    cuda.atomic.min(least, 0, smallest)


@cuda.jit(device=True)
def label_components(
    rows, size, words, stride, root, lower, again, first, step, word, thread, threads
):  # fmt: skip
    """Label every member with the first one of its component, as ``root``.

    Of the roots on both sides of an edge the greater goes below the smaller (the smallest there
    is), until no edge joins two: a few rounds. Reading and writing take turns.
    """
    for a in range(thread, size, threads):
        root[a] = a
        lower[a] = a
    while True:
        cuda.syncthreads()
        if thread == 0:
            again[0] = 0
        cuda.syncthreads()
        for a in range(first, size, step):
            bits = bits_beyond(rows, a, word, stride)
            mine = root[a]
            while bits:
                other = root[32 * word + cuda.ffs(bits) - 1]
                bits = np.uint32(bits & (bits - ONE))
                if mine != other:
                    cuda.atomic.min(lower, max(mine, other), min(mine, other))
                    again[0] = 1
        cuda.syncthreads()
        if again[0] == 0:
            return
        for a in range(thread, size, threads):
            top = root[a]
            while lower[top] != top:
                top = lower[top]
            root[a] = top


@functools.cache
def build(threads: int, largest: int, blocks: int, model: int, index_type: Any) -> Any:
    """Make the kernel of a model for ego-networks of up to ``largest`` members.

    Launch: a block of ``threads`` for each of the vertices ``listed``. Degrees: any up to
    ``largest``. Shared memory: 4.8 KB for 128 members, 44 KB for 512; components 1.7 and 7.2.
    Registers: 44 to 70.

    ``output`` is the number of contexts for ``k`` (SCORE, into ``scores``), that for every k
    (EVERY, from ``scores[offsets[ego]]`` on; for components how many there are of each size), or
    the first member of each one's context (MEMBERS, into ``members`` from ``offsets[ego]`` on).
    """
    room = largest * ((-(-largest // 32)) | 1)
    words_at_most = -(-largest // 32)
    if model == COMPONENT:
        room = 1

    def ego_bitmap(indptr, indices, vertices, listed, k, output, scores, offsets, members):
        neighbours = cuda.shared.array(largest, index_type)
        rows = cuda.shared.array(room, np.uint32)
        alive = cuda.shared.array(words_at_most, np.uint32)
        dropped = cuda.shared.array(words_at_most, np.uint32)
        root = cuda.shared.array(largest, np.int32)
        lower = cuda.shared.array(largest, np.int32)
        sums = cuda.shared.array(largest, np.int32)
        partial = cuda.shared.array(threads, np.int32)
        changed = cuda.shared.array(1, np.int32)
        least = cuda.shared.array(1, np.int32)
        counted = cuda.shared.array(1, np.int32)

        thread = cuda.threadIdx.x
        ego = listed[cuda.blockIdx.x]
        u = vertices[ego]
        start = indptr[u]
        size = np.int32(indptr[u + 1] - start)
        words = (size + 31) >> 5
        stride = words | 1  # odd, so that rows begin in different banks
        # A thread has the same word of every so many rows.
        rows_at_once = threads // max(words, 1)
        word = thread % max(words, 1)
        first_row = thread // max(words, 1)
        if first_row >= rows_at_once:
            first_row = size

        for i in range(thread, size, threads):
            neighbours[i] = indices[start + i]
        if model == COMPONENT:
            for i in range(thread, size, threads):
                root[i] = i
        else:
            for i in range(thread, size * stride, threads):
                rows[i] = 0
        for i in range(thread, words, threads):
            rest = size - 32 * i
            alive[i] = ALL if rest >= 32 else (ONE << np.uint32(rest)) - ONE
        cuda.syncthreads()

        share_lookups(indptr, neighbours, size, sums, partial, thread, threads)
        for lookup in range(thread, partial[threads - 1], threads):
            a, b = look_up(
                indptr, indices, neighbours, size, sums, lookup, root, model == COMPONENT
            )
            if b >= 0 and model == COMPONENT:
                if root[a] != root[b]:  # mostly they hang from one root already
                    union(root, np.int32(a), np.int32(b))
            elif b >= 0:
                cuda.atomic.or_(rows, a * stride + (b >> 5), ONE << np.uint32(b & 31))
                cuda.atomic.or_(rows, b * stride + (a >> 5), ONE << np.uint32(a & 31))
        cuda.syncthreads()

        fewest = k if model == COMPONENT else 2  # members of a context; who is alone is in none
        level, enough = np.int32(k), np.int32(k - 2)
        if output == EVERY:
            level, enough = np.int32(2 if model == TRUSS else 1), NOTHING
        while True:
            if thread == 0:
                least[0] = NOTHING
                counted[0] = 0
            while model != COMPONENT:
                cuda.syncthreads()
                if thread == 0:
                    changed[0] = 0
                    least[0] = NOTHING
                if model == TRUSS:
                    for i in range(thread, words, threads):
                        dropped[i] = 0
                cuda.syncthreads()
                if model == CORE:
                    drop_members(
                        rows, alive, dropped, size, words, stride, level,
                        changed, least, thread, threads,
                    )  # fmt: skip
                else:
                    drop_edges(
                        rows, alive, dropped, size, words, stride, level, enough,
                        changed, least, first_row, rows_at_once, word,
                    )  # fmt: skip
                cuda.syncthreads()
                if changed[0] == 0:
                    break
                if model == TRUSS and output != EVERY:
                    for i in range(thread, words, threads):
                        alive[i] = dropped[i]
            if model == CORE:
                for a in range(first_row, size, rows_at_once):
                    if (alive[a >> 5] >> np.uint32(a & 31)) & ONE:
                        rows[a * stride + word] &= alive[word]
                    else:
                        rows[a * stride + word] = 0

            if model == COMPONENT:
                # Nobody shortens another's way here: a late store of that would undo a root.
                for a in range(thread, size, threads):
                    top = root[a]
                    while root[top] != top:
                        top = root[top]
                    root[a] = top
            else:
                label_components(
                    rows, size, words, stride, root, lower, changed,
                    first_row, rows_at_once, word, thread, threads,
                )  # fmt: skip
            for a in range(thread, size, threads):
                sums[a] = 0
            cuda.syncthreads()
            for a in range(thread, size, threads):
                cuda.atomic.add(sums, root[a], np.int32(1))
            cuda.syncthreads()

            if output == EVERY and model == COMPONENT:
                # how many components have each size; the host adds up
                for a in range(thread, size, threads):
                    if sums[a] > 0:
                        cuda.atomic.add(scores, offsets[ego] + sums[a] - 1, np.int32(1))
                break
            if output == MEMBERS:
                for a in range(thread, size, threads):
                    first = root[a]
                    members[offsets[ego] + a] = first if sums[first] >= fewest else np.int32(-1)
                break
            for a in range(thread, size, threads):
                if sums[a] >= fewest:
                    cuda.atomic.add(counted, 0, np.int32(1))
            cuda.syncthreads()
            if output == SCORE:
                if thread == 0:
                    scores[ego] = counted[0]
                break
            if least[0] == NOTHING:
                break
            # the same is left for every level up to the least that anything has
            highest = least[0] + 2 if model == TRUSS else least[0]
            for i in range(level + thread, highest + 1, threads):
                scores[offsets[ego] + i - 1] = counted[0]
            level = np.int32(highest + 1)
            cuda.syncthreads()

    key = f"{threads} {largest} {blocks} {model} {index_type.__name__}"
    return kernel(ego_bitmap, key, launch_bounds=(threads, blocks))


@functools.cache
def build_list_by_degree(threads: int, above: tuple[int, ...]) -> Any:
    """Make the kernel that lists vertices by degree: ``lists[i]`` those above ``above[i]``.

    Launch: a thread a vertex. Degrees: any. Shared memory: 12 bytes a list. Registers: 20.

    ``above`` ascends, and a vertex is in the last list it could be in; ``numbers`` counts, from 0.
    In one launch, since many small ones are what costs where few vertices are asked for, or threads
    take turns to launch. A list keeps vertices together that were, but not their order.
    """
    lists_there = len(above)

    def list_by_degree(indptr, vertices, lists, numbers):
        taken = cuda.shared.array(lists_there, np.int32)
        start = cuda.shared.array(lists_there, np.int64)
        thread = cuda.threadIdx.x
        i = np.int64(cuda.blockIdx.x) * threads + thread
        if thread < lists_there:
            taken[thread] = 0
        cuda.syncthreads()
        which, rank = -1, np.int32(0)
        if i < vertices.size:
            v = vertices[i]
            degree = indptr[v + 1] - indptr[v]
            for least in above:
                if degree > least:
                    which += 1
            if which >= 0:
                rank = cuda.atomic.add(taken, which, np.int32(1))
        cuda.syncthreads()
        if thread < lists_there and taken[thread] > 0:
            start[thread] = cuda.atomic.add(numbers, thread, np.int64(taken[thread]))
        cuda.syncthreads()
        if which >= 0:
            lists[which, start[which] + rank] = i

    return kernel(list_by_degree, f"{threads} {above}")
