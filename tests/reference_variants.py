"""Slow, obvious twins of the variants: layered, speaker-listener and seeded label propagation."""

import math
from fractions import Fraction
from itertools import pairwise

from reference import label_propagation, mix, neighbour_lists, scale_of, turns_of, votes_of, winner


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


def renumbered_cover(kept):
    """As ``renumbered`` for what SLPA reports; of two with one smallest vertex, smaller label."""
    number = {}
    for labels in kept:
        for label in sorted(labels):
            number.setdefault(label, len(number))
    return [{number[label]: labels[label] for label in labels} for labels in kept]
