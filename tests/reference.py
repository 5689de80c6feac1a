"""Slow, obvious twins of everything: plain Python on lists and dicts, for the tests.

They read a graph as ``indptr, indices, weights`` of ``Graph.rows(direction)``: row v holds the
neighbours whose labels v reads. Nothing here is skipped, cached, packed or parallel.
"""

import math
from fractions import Fraction
from itertools import chain, pairwise

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

# ---------------------------------------------------------------- label propagation

MASK = 2**64 - 1
CLASS_SEED = 0x5EED


def mix(x, seed):
    """Hash (x, seed) to 64 bits: the finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    z = (x + (seed + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def xxh64(data):
    """XXH64 of bytes, seed 0 (Collet 2014; the specification's pseudo-code)."""
    one, two, three = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    four, five = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def turned(x, bits):
        return ((x << bits) | (x >> (64 - bits))) & MASK

    def rounded(accumulator, lane):
        return turned((accumulator + lane * two) & MASK, 31) * one & MASK

    def integer(piece):
        return int.from_bytes(piece, "little")

    word, rest = five, data
    if len(data) >= 32:
        lanes = [(one + two) & MASK, two, 0, -one & MASK]
        while len(rest) >= 32:
            lanes = [
                rounded(lane, integer(rest[8 * i : 8 * i + 8])) for i, lane in enumerate(lanes)
            ]
            rest = rest[32:]
        word = sum(map(turned, lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            word = ((word ^ rounded(0, lane)) * one + four) & MASK
    word = (word + len(data)) & MASK
    while len(rest) >= 8:
        word = (turned(word ^ rounded(0, integer(rest[:8])), 27) * one + four) & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        word = (turned(word ^ (integer(rest[:4]) * one & MASK), 23) * two + three) & MASK
        rest = rest[4:]
    for byte in rest:
        word = turned(word ^ (byte * five & MASK), 11) * one & MASK
    word = (word ^ (word >> 33)) * two & MASK
    word = (word ^ (word >> 29)) * three & MASK
    return word ^ (word >> 32)


def id_word(identity):
    """What is hashed in the place of a vertex with this id."""
    if isinstance(identity, tuple):
        word = id_word(identity[0])
        for part in identity[1:]:
            word = (mix(word, 1) + id_word(part)) & MASK
        return word
    if isinstance(identity, int | np.integer):
        return int(identity) & MASK
    if isinstance(identity, np.datetime64):
        return int(identity.astype(np.int64)) & MASK
    if isinstance(identity, bytes):
        return xxh64(identity)
    return xxh64(str(identity).encode("utf-8", "surrogatepass"))


def classes_of(words, classes, update):
    """Lists of the vertices that are updated together, in the order they take their turns."""
    if update == "sync":
        return [list(range(len(words)))]
    turns = [[] for _ in range(classes)]
    for v, word in enumerate(words):
        turns[mix(word, CLASS_SEED) % classes].append(v)
    return turns


def turns_of(words, classes, update, changed, exploring):
    """The turns of a sweep, after sweeps that changed so many labels each.

    After a sweep with few changes neighbouring classes are one: at most 8 or 4 are left.
    """
    turns = classes_of(words, classes, update)
    most = len(turns)
    if changed and changed[-1] <= len(words) / (8 if exploring else 4):
        most = 8
    if changed and changed[-1] <= len(words) / (32 if exploring else 8):
        most = 4
    while len(turns) > most:
        turns = [list(chain(*turns[i : i + 2])) for i in range(0, len(turns), 2)]
    return turns


def scale_of(indptr, weights):
    """The power of two by which float weights become integers; 1 for integers and no weights."""
    if weights is None or weights.dtype.kind != "f" or len(weights) == 0 or max(weights) == 0:
        return Fraction(1)
    degree = max(int(end) - int(start) for start, end in pairwise(indptr))
    return largest_scale(Fraction(float(max(weights))) * degree)


def largest_scale(largest_sum):
    """The largest power of two that keeps ``largest_sum`` within 2^62."""
    scale = Fraction(1)
    while largest_sum * scale <= 2**62:
        scale *= 2
    while largest_sum * scale > 2**62:
        scale /= 2
    return scale


def neighbour_lists(indptr, indices, weights):
    """Each vertex's list of (neighbour, amount of its vote as an integer)."""
    scale = scale_of(indptr, weights)

    def amount(i):
        if weights is None:
            return 1
        # round() of a Fraction is exact, half to even
        return round(Fraction(weights[i].item()) * scale)

    return [
        [(int(indices[i]), amount(i)) for i in range(int(indptr[v]), int(indptr[v + 1]))]
        for v in range(len(indptr) - 1)
    ]


def votes_of(neighbours, labels):
    """Votes for each label among the neighbours; a negative label is silence."""
    votes = {}
    for u, amount in neighbours:
        if labels[u] >= 0:
            votes[labels[u]] = votes.get(labels[u], 0) + amount
    return votes


def winner(scores, current, *, sweep, exploring, tie_break, retain, seed, words):
    """The label with the highest score; ``current`` where there is none."""
    if not scores:
        return current
    highest = max(scores.values())
    best = [label for label in scores if scores[label] == highest]
    if not exploring and retain and current in best:
        return current
    if exploring:
        return min(best, key=lambda label: (mix(words[label], seed + (sweep << 32)), label))
    if tie_break == "hash":
        return min(best, key=lambda label: (mix(words[label], seed), label))
    return min(best) if tie_break == "min" else max(best)


def label_propagation(
    indptr,
    indices,
    weights=None,
    *,
    max_iter=60,
    classes=32,
    explore=10,
    tol=0.0,
    update="semi",
    tie_break="min",
    retain=True,
    seed=0,
    score=None,
    words=None,
    initial=None,
):
    """Classic label propagation: (labels, changed labels of each sweep).

    ``initial``: the first label of each vertex; None: itself.
    ``words``: what is hashed in the place of each vertex; None: its index.
    ``score(votes, volume)``, if given, replaces the votes of a label by a score of them and of the
    number of other vertices that hold the label.
    """
    neighbours = neighbour_lists(indptr, indices, weights)
    n = len(neighbours)
    words = range(n) if words is None else words
    labels = list(range(n) if initial is None else initial)
    changed = []
    explored = None if explore else 0
    for sweep in range(1, max_iter + 1):
        exploring = explored is None
        turns = turns_of(words, classes, update, changed, exploring)
        changed.append(0)
        for turn in turns:
            volume = {}
            for label in labels:
                volume[label] = volume.get(label, 0) + 1
            chosen = {}
            for v in turn:
                scores = votes_of(neighbours[v], labels)
                if score is not None:
                    scores = {
                        label: score(scores[label], volume[label] - (labels[v] == label))
                        for label in scores
                    }
                chosen[v] = winner(
                    scores,
                    labels[v],
                    sweep=sweep,
                    exploring=exploring,
                    tie_break=tie_break,
                    retain=retain,
                    seed=seed,
                    words=words,
                )
            for v in turn:
                changed[-1] += labels[v] != chosen[v]
                labels[v] = chosen[v]
        if exploring:
            few = changed[-1] <= tol * n
            if sweep == explore or few or (sweep > 1 and 25 * changed[-1] > 24 * changed[-2]):
                explored = sweep
            continue
        if changed[-1] <= tol * n:
            break
        settling = changed[explored:]
        if tol > 0 and len(settling) > 3 and min(settling[-3:]) >= min(settling[:-3]):
            break
    return labels, changed


def initial_labels(ids, earlier):
    """First labels from an earlier result, {id: community}: the smallest member that is there."""
    members = {}
    for v, identity in enumerate(ids):
        if identity in earlier:
            members.setdefault(earlier[identity], []).append(v)
    return [
        min(members[earlier[identity]]) if identity in earlier else v
        for v, identity in enumerate(ids)
    ]


def layered_label_propagation(indptr, indices, weights=None, *, gammas, **options):
    """Layered LP (Boldi, Rosa, Santini, Vigna 2011): {gamma: (labels, changed)}."""
    scale = float(scale_of(indptr, weights))
    results = {}
    for gamma in gammas:

        def score(votes, volume, gamma=float(gamma)):
            k = float(votes) / scale
            return k - gamma * (float(volume) - k)

        results[gamma] = label_propagation(indptr, indices, weights, score=score, **options)
    return results


def speaker_listener(
    indptr,
    indices,
    weights=None,
    *,
    max_iter=20,
    max_labels=5,
    threshold=0.1,
    classes=32,
    update="semi",
    seed=0,
    words=None,
):
    """SLPA (Xie, Szymanski, Liu 2011): for each vertex its {label: frequency in its memory}."""
    neighbours = neighbour_lists(indptr, indices, weights)
    n = len(neighbours)
    words = range(n) if words is None else words
    memory = [[v] for v in range(n)]
    changed = []

    def spoken(v, sweep):
        return memory[v][mix(v, seed + (sweep << 32) + 1) % len(memory[v])]

    said = [spoken(v, 0) for v in range(n)]
    for sweep in range(1, max_iter + 1):
        turns = turns_of(words, classes, update, changed, exploring=True)
        changed.append(0)
        for turn in turns:
            heard = {}
            for v in turn:
                heard[v] = winner(
                    votes_of(neighbours[v], said),
                    v,  # who hears nobody knows only itself
                    sweep=sweep,
                    exploring=True,
                    tie_break="hash",
                    retain=False,
                    seed=seed,
                    words=words,
                )
            for v in turn:
                memory[v].append(heard[v])
                before, said[v] = said[v], spoken(v, sweep)
                changed[-1] += said[v] != before
    return [kept_of(labels, max_labels, threshold) for labels in memory]


def kept_of(memory, max_labels, threshold):
    """{label: frequency} of the labels of a memory that SLPA reports."""
    counts = {}
    for label in memory:
        counts[label] = counts.get(label, 0) + 1
    ranked = sorted(counts, key=lambda label: (-counts[label], label))[:max_labels]
    return {
        label: counts[label] / len(memory)
        for label in ranked
        if label == ranked[0] or counts[label] / len(memory) >= threshold
    }


def seeded_label_propagation(
    indptr,
    indices,
    weights=None,
    *,
    seeds,
    max_iter=10,
    max_hops=None,
    damping=0.85,
    classes=32,
    update="sync",
    tie_break="min",
    retain=True,
    seed=0,
    scale=None,
    symmetric=False,
    words=None,
):
    """Seeded LP: (labels, scores, hops, changed); -1, 0.0, -1 for a vertex that was not reached.

    ``seeds`` is {vertex: label}. The score is that of Zhou et al. 2004, the winner's votes taking
    all. ``scale`` overrides the power of two that makes votes integers; ``symmetric`` says that
    the graph is undirected.
    """
    weighted = [
        [(int(indices[i]), 1 if weights is None else weights[i].item()) for i in range(*ends)]
        for ends in pairwise(int(end) for end in indptr)
    ]
    weighted = [[(u, weight) for u, weight in row if u != v] for v, row in enumerate(weighted)]
    n = len(weighted)
    words = range(n) if words is None else words
    heard = [Fraction(0)] * n
    said = [Fraction(0)] * n
    for v, row in enumerate(weighted):
        for u, weight in row:
            heard[v] += Fraction(weight)
            said[u] += Fraction(weight)
    heard = [math.sqrt(total) for total in map(float, heard)]
    said = [math.sqrt(total) for total in map(float, said)]
    if scale is None:
        scale = 2**40
    # 2^unit[v] is more than v can ever hear: more than all strengths together, or, if who hears
    # also says, than what it would hear if all were as strong for their weight as any seed
    growth = max_iter * (classes if update == "semi" else 1) + 1.0
    if damping < 1:
        growth = min(growth, 1 / (1 - damping))
    together = math.sqrt(max(len(seeds), 1)) * growth
    loud = [said[v] for v in seeds if said[v] > 0]
    most = [min(together, (norm or 1.0) / min(loud)) if symmetric and loud else together
            for norm in heard]  # fmt: skip
    unit = [2.0 ** math.frexp(bound)[1] for bound in most]
    gain = [1.0 / (norm or 1.0) / unit[v] for v, norm in enumerate(heard)]

    labels = [seeds.get(v, -1) for v in range(n)]
    scores = [1.0 if v in seeds else 0.0 for v in range(n)]
    hops = [0 if v in seeds else -1 for v in range(n)]
    spoken = [scores[v] / said[v] if said[v] > 0 else 0.0 for v in range(n)]
    changed = []
    for sweep in range(1, max_iter + 1):
        turns = turns_of(words, classes, update, changed, exploring=False)
        changed.append(0)
        for turn in turns:
            chosen = {}
            for v in turn:
                if v in seeds or (labels[v] < 0 and max_hops is not None and sweep > max_hops):
                    continue
                votes = {}
                for u, weight in weighted[v]:
                    if labels[u] >= 0:
                        amount = round(Fraction(weight * spoken[u] * gain[v]) * scale)
                        votes[labels[u]] = votes.get(labels[u], 0) + amount
                if votes:
                    label = winner(
                        votes,
                        labels[v],
                        sweep=sweep,
                        exploring=False,
                        tie_break=tie_break,
                        retain=retain,
                        seed=seed,
                        words=words,
                    )
                    chosen[v] = label, float(votes[label]) / float(scale)
            for v, (label, vote) in chosen.items():
                changed[-1] += labels[v] != label
                labels[v] = label
                scores[v] = damping * vote * unit[v]
                spoken[v] = scores[v] / said[v] if said[v] > 0 else 0.0
                if hops[v] < 0:
                    hops[v] = sweep
    return labels, scores, hops, changed


def renumbered(labels):
    """Communities numbered 0..k-1 by the smallest vertex index in each; -1 stays -1."""
    number = {}
    for label in labels:
        if label >= 0:
            number.setdefault(label, len(number))
    return [number[label] if label >= 0 else -1 for label in labels]


def renumbered_cover(kept):
    """As ``renumbered`` for what SLPA reports; of two with one smallest vertex, smaller label."""
    number = {}
    for labels in kept:
        for label in sorted(labels):
            number.setdefault(label, len(number))
    return [{number[label]: labels[label] for label in labels} for labels in kept]


# ---------------------------------------------------------------- building the graph


def adjacency(pairs, weights=None, *, directed=False, vertices=(), multigraph="merge"):
    """(ids in index order, per row a dict from neighbour index to weight, None if unweighted).

    ``pairs`` are of external ids of one sortable type; weights must add up exactly as floats.
    """
    ids = sorted({end for pair in pairs for end in pair} | set(vertices))
    index = {external: i for i, external in enumerate(ids)}
    rows = [{} for _ in ids]
    for place, (source, destination) in enumerate(pairs):
        amount = 1 if weights is None else weights[place]
        u, v = index[source], index[destination]
        for row, other in {(u, v)} if directed else {(u, v), (v, u)}:
            before = rows[row].get(other)
            if before is None:
                rows[row][other] = amount
            else:
                rows[row][other] = min(before, amount) if multigraph == "min" else before + amount
    if weights is None and multigraph != "keep":
        rows = [dict.fromkeys(row) for row in rows]
    return ids, [dict(sorted(row.items())) for row in rows]


# ---------------------------------------------------------------- structural diversity
#
# A graph is a list of neighbour sets, a subgraph a dict from vertex to neighbour set; no loops.


def neighbour_sets(indptr, indices):
    """Each vertex's set of neighbours, whichever way the entries point, without itself."""
    rows = [set() for _ in indptr[1:]]
    for v, (start, end) in enumerate(pairwise(map(int, indptr))):
        for u in map(int, indices[start:end]):
            if u != v:
                rows[v].add(u)
                rows[u].add(v)
    return rows


def ego_network(neighbours, v):
    """The subgraph that the neighbours of v induce; v is not in it."""
    return {u: neighbours[u] & neighbours[v] for u in sorted(neighbours[v])}


def connected_components(graph):
    """Sorted lists of vertices, by their smallest."""
    found, seen = [], set()
    for start in sorted(graph):
        if start not in seen:
            reached = frontier = {start}
            while frontier:
                frontier = set().union(*(graph[v] for v in frontier)) - reached
                reached = reached | frontier
            seen |= reached
            found.append(sorted(reached))
    return found


def core(graph, k):
    """The k-core: vertices with fewer than k neighbours go until there are none."""
    while any(len(row) < k for row in graph.values()):
        left = {v for v, row in graph.items() if len(row) >= k}
        graph = {v: graph[v] & left for v in left}
    return graph


def truss(graph, k):
    """The k-truss: edges in fewer than k - 2 triangles go until there are none."""
    while True:
        strong = {v: {u for u in row if len(row & graph[u]) >= k - 2} for v, row in graph.items()}
        if strong == graph:
            return {v: row for v, row in graph.items() if row}
        graph = strong


def social_contexts(ego, k, model):
    """The contexts of an ego-network, sorted lists of members by their smallest."""
    if model == "component":
        return [members for members in connected_components(ego) if len(members) >= k]
    return connected_components({"core": core, "truss": truss}[model](ego, k))


def core_numbers(neighbours):
    """Per vertex the largest k whose k-core it is in."""
    graph = dict(enumerate(neighbours))
    numbers = [0] * len(graph)
    for k in range(len(graph)):
        graph = core(graph, k)
        for v in graph:
            numbers[v] = k
    return numbers


def trussness(neighbours):
    """Per edge (u, v), u < v, the largest k whose k-truss it is in."""
    graph, numbers, k = dict(enumerate(neighbours)), {}, 2
    while graph := truss(graph, k):
        numbers |= {(u, v): k for u, row in graph.items() for v in row if u < v}
        k += 1
    return numbers


def triangle_counts(neighbours):
    """Per vertex how many triangles it is a corner of."""
    return [sum(len(row & neighbours[u]) for u in row) // 2 for row in neighbours]


def matrix_truss(graph, k):
    """The k-truss of a graph as a 0/1 sparse matrix."""
    before = None
    while k > 2 and before != graph.nnz:
        before = graph.nnz
        graph = ((graph @ graph).multiply(graph) >= k - 2).astype(graph.dtype)
    return graph


def matrix_contexts(ego, largest, model):
    """What `social_contexts` gives for k = 1 .. largest, for large ego-networks and many k.

    ``ego`` is a 0/1 sparse matrix. Per k an array: for every vertex the first member of the
    context it is in, -1 if it is in none. Truss: all -1 for k = 1.
    """
    members, found = np.full(ego.shape[0], True), []
    for k in range(1, largest + 1):
        while model == "core" and (weak := members & (ego.sum(axis=1) < k)).any():
            members &= ~weak
            left = sparse.diags_array(members.astype(ego.dtype))
            ego = left @ ego @ left
            ego.eliminate_zeros()
        if model == "truss":
            ego = matrix_truss(ego, k)
            members = (ego.sum(axis=1) > 0) & (k > 1)
        _, labels = csgraph.connected_components(ego, directed=False)
        _, first, group, sizes = np.unique(labels, True, True, True)
        large = sizes[group] >= (k if model == "component" else 1)
        found.append(np.where(members & large, first[group], -1))
    return found


# ---------------------------------------------------------------- traversal


def distances(indptr, indices, weights, starts, cutoff=None):
    """The least sum over all paths from the starts, None where there is none (Bellman and Ford).

    Sums are of the weights' own type, rounded at every edge; without weights edges count.
    """
    found = [None] * (len(indptr) - 1)
    zero = 0 if weights is None else weights.dtype.type(0)
    for start in starts:
        found[start] = zero
    changed = True
    while changed:
        changed = False
        for u, (begin, end) in enumerate(pairwise(map(int, indptr))):
            for p in range(begin, end) if found[u] is not None else ():
                v, through = int(indices[p]), found[u] + (1 if weights is None else weights[p])
                better = found[v] is None or through < found[v]
                if better and (cutoff is None or through <= cutoff):
                    found[v], changed = through, True
    return found


def predecessors(indptr, indices, weights, starts, found):
    """The vertex before each on a shortest path, -1 for none.

    The smallest of those that are nearer; where none is, round by round, the smallest that has a
    predecessor already (or is a start).
    """
    tight = [[] for _ in found]
    for u, (begin, end) in enumerate(pairwise(map(int, indptr))):
        for p in range(begin, end) if found[u] is not None else ():
            v = int(indices[p])
            if (
                found[v] is not None
                and found[u] + (1 if weights is None else weights[p]) == found[v]
            ):
                tight[v].append(u)
    before = [
        -1 if v in starts else min((u for u in near if found[u] < found[v]), default=-1)
        for v, near in enumerate(tight)
    ]
    settled = {v for v in range(len(found)) if found[v] is not None and before[v] >= 0}
    settled |= set(starts)
    while True:
        news = {
            v: min(near)
            for v in range(len(found))
            if v not in settled and (near := [u for u in tight[v] if u in settled])
        }
        if not news:
            return before
        for v, u in news.items():
            before[v] = u
        settled |= set(news)
