"""Slow, obvious twins of label propagation: plain Python on lists and dicts, for the tests.

They read a graph as ``indptr, indices, weights`` of ``Graph.rows(direction)``: row v holds the
neighbours whose labels v reads. Nothing here is skipped, cached, packed or parallel. Other twins
are in reference_variants.py, reference_diversity.py, reference_traversal.py and beside them.
"""

from fractions import Fraction
from itertools import chain, pairwise

import numpy as np

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

    After a sweep with few changes neighbouring classes are one: at most 8 or 4 are left. So are
    those of the first sweep that explores, if vertices are few.
    """
    turns = classes_of(words, classes, update)
    most = len(turns)
    if not changed and exploring and len(words) <= 8192:
        most = 4
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
    before=None,
):
    """Classic label propagation: (labels, changed labels of each sweep).

    ``initial``: the first label of each vertex; None: itself.
    ``before``: how many labels changed before the first sweep; None: nobody knows.
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
        known = changed or ([] if before is None else [before])
        turns = turns_of(words, classes, update, known, exploring)
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


def renumbered(labels):
    """Communities numbered 0..k-1 by the smallest vertex index in each; -1 stays -1."""
    number = {}
    for label in labels:
        if label >= 0:
            number.setdefault(label, len(number))
    return [number[label] if label >= 0 else -1 for label in labels]


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
