"""The plain twin of multilevel label propagation: Python integers, dicts, one vertex at a time."""

import math
from fractions import Fraction
from itertools import chain

from reference import CLASS_SEED, MASK, mix

CLASSES, MOST_SWEEPS, FEW, REFINING_SWEEPS = 8, 5, 100, 2
SMALL, FEWER_CLASSES, FEWEST_CLASSES = 2048, 4, 2
ITERATIONS, MOST_ITERATIONS, MORE, UNMOVED = 2, 6, 1 << 20, 1000
LARGE, MOST_LEFT, UNSETTLED = 1 << 20, 0.75, 8
DOWN = 1 << 36


def bits(value):
    """The least e with value <= 2^e; 0 for 0."""
    e = 0
    while value and Fraction(2) ** (e - 1) >= value:
        e -= 1
    while value > Fraction(2) ** e:
        e += 1
    return e


class Objective:
    """Neighbours {u: weight} and volumes of n vertices, and the constant, all of them integers.

    ``edges``: (u, v, weight) of every undirected edge, once.
    """

    def __init__(self, edges, n, name, resolution):
        gamma = self.resolution = Fraction(resolution)
        self.name = name
        total = sum((2 * Fraction(weight) for _, _, weight in edges), Fraction(0))
        room = max(Fraction(1), 1 / gamma) if name == "modularity" else Fraction(1)
        self.exponent = 61 - bits(Fraction(float(total)) * room)
        self.neighbours = [{} for _ in range(n)]
        self.degree = [0] * n
        for u, v, weight in edges:
            exact = Fraction(weight if self.exponent >= 0 else float(weight))
            fixed = round(exact * Fraction(2) ** self.exponent)
            self.degree[u] += fixed
            self.degree[v] += fixed
            if u != v:
                self.neighbours[u][v] = self.neighbours[v][u] = fixed
        if name == "modularity":
            self.volume, self.constant = self.degree, round(sum(self.degree) / gamma)
            return
        shift = (self.exponent + 61 - bits(1 / gamma)) // 2
        shift = max(min(shift, 61 - n.bit_length()), 0)
        constant = round(Fraction(2) ** (2 * shift - self.exponent) / gamma)
        self.volume, self.constant = [2**shift] * n, min(constant, 2**62)

    def quality(self, partition):
        """The quality of a partition, what gains of it are measured by, and its exact value."""
        inside, total, sums, sizes, volumes = sum(self.degree), sum(self.degree), {}, {}, {}
        for v, neighbours in enumerate(self.neighbours):
            inside -= sum(w for u, w in neighbours.items() if partition[u] != partition[v])
            sums[partition[v]] = sums.get(partition[v], 0) + self.degree[v]
            sizes[partition[v]] = sizes.get(partition[v], 0) + 1
            volumes[partition[v]] = volumes.get(partition[v], 0) + self.volume[v]
        exact = self.constant * inside - sum(volume**2 for volume in volumes.values())
        if self.name == "cpm":
            pairs = sum(size * (size - 1) // 2 for size in sizes.values())
            weight = Fraction(inside, 2) / Fraction(2) ** self.exponent
            quality = float(weight - self.resolution * pairs)
            return quality, math.ldexp(total / 2, -self.exponent), exact
        if not total:
            return math.nan, 1.0, exact
        expected = sum(Fraction(volume, total) ** 2 for volume in sums.values())
        return float(Fraction(inside, total) - self.resolution * expected), 1.0, exact


def classes_of(words, seed, draw, number=FEWER_CLASSES):
    """Lists of vertices that are updated together."""
    classes = [[] for _ in range(number)]
    for v, word in enumerate(words):
        classes[mix(word, (CLASS_SEED + seed + (draw << 32)) & MASK) % len(classes)].append(v)
    return classes


def weights_to(v, neighbours, labels, counts=lambda u: True):
    """The weight from a vertex to each label around it."""
    found = {}
    for u, weight in neighbours[v].items():
        if weight > 0 and counts(u):
            found[labels[u]] = found.get(labels[u], 0) + weight
    return found


def move(neighbours, volume, constant, words, labels, seed, classes):
    """Sweeps of local moving; changes the labels, returns how many moved in each."""
    n = len(labels)
    active, moved = set(range(n)), []
    while not (len(moved) >= MOST_SWEEPS or (moved and FEW * moved[-1] <= n)):
        moved.append(0)
        for members in classes_of(words, seed, 0, classes):
            goals = {}
            for v in members:
                if v in active:
                    goal = best_community(v, neighbours, volume, constant, words, labels, seed)
                    if goal != labels[v]:
                        goals[v] = goal
            active -= set(members)
            for v, goal in goals.items():
                labels[v] = goal
            moved[-1] += len(goals)
            for v, goal in goals.items():
                active |= {u for u in neighbours[v] if labels[u] != goal}
    return moved


def best_community(v, neighbours, volume, constant, words, labels, seed):
    """Where a vertex moves."""
    own = labels[v]
    weight = weights_to(v, neighbours, labels)
    weight.setdefault(own, 0)
    inside = {label: 0 for label in weight}
    size = {label: 0 for label in (*weight, v)}
    for u, label in enumerate(labels):
        if label in size:
            size[label] += 1
        if label in weight and u != v:
            inside[label] += volume[u]
    gains = {label: weight[label] * constant - volume[v] * inside[label] for label in weight}
    highest = max(gains.values())
    best = own
    if gains[own] < highest:
        equal = [label for label in gains if gains[label] == highest]
        best = min(equal, key=lambda label: (mix(words[label], seed), label))
    if highest < 0 and size[v] == 0:
        return v
    if size[own] == 1 and size[best] == 1 and best > own:
        return own
    return best


def refine(neighbours, volume, constant, words, communities, seed, sweeps=REFINING_SWEEPS):
    """Parts of the communities: vertices that are alone join a well-connected part."""
    n = len(communities)
    parts = list(range(n))
    members_of = {v: {v} for v in range(n)}

    def well_connected(part):
        members = members_of[part]
        community = communities[min(members)]
        rest = {u for u in range(n) if communities[u] == community} - members
        outward = sum(weight for v in members for u, weight in neighbours[v].items() if u in rest)
        mine = sum(volume[v] for v in members)
        return outward * constant >= mine * sum(volume[u] for u in rest)

    for draw in range(1, sweeps + 1):
        joined = 0
        for turn in classes_of(words, seed, draw):
            goals = {}
            for v in turn:
                if len(members_of[parts[v]]) > 1 or not well_connected(parts[v]):
                    continue

                def counts(u, v=v, turn=turn):
                    alone = len(members_of[parts[u]]) == 1
                    return communities[u] == communities[v] and not (alone and u in turn)

                best = None
                for part, weight in weights_to(v, neighbours, parts, counts).items():
                    there = volume[v] * sum(volume[u] for u in members_of[part])
                    if weight * constant <= there or not well_connected(part):
                        continue
                    drawn = mix(words[part], mix(words[v], seed))
                    noisy = constant - (constant >> 11) * (drawn >> 58)
                    key = (-(weight * noisy - there), drawn, part)
                    best = key if best is None else min(best, key)
                if best is not None:
                    goals[v] = best[2]
            for v, part in goals.items():
                members_of[parts[v]].remove(v)
                members_of[part].add(v)
                parts[v] = part
            joined += len(goals)
        if not joined:
            break
    return parts


def contract(neighbours, volume, words, parts):
    """The level whose vertices are the parts, which are numbered from 0."""
    number = max(parts) + 1
    new = [{} for _ in range(number)]
    volumes = [0] * number
    for v, part in enumerate(parts):
        volumes[part] += volume[v]
        for u, weight in neighbours[v].items():
            if parts[u] != part and weight > 0:
                new[part][parts[u]] = new[part].get(parts[u], 0) + weight
    return new, volumes, [words[parts.index(part)] for part in range(number)]


def renumbered(labels):
    """Labels numbered from 0 in the order in which they first come."""
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return [number[label] for label in labels]


def named_by_first(labels):
    """Each label replaced by the first place where it stands."""
    return [labels.index(label) for label in labels]


def among_all(labels, kept, n):
    """Labels of all vertices, of which some are ``kept`` and the others alone."""
    known = dict(zip(kept, labels, strict=True))
    return renumbered([(known.get(v), v not in known and v) for v in range(n)])


def pieces(neighbours, labels):
    """Communities cut into connected pieces."""
    found = [None] * len(labels)
    for start in range(len(labels)):
        ahead = [start] if found[start] is None else []
        while ahead:
            v = ahead.pop()
            found[v] = start
            ahead += [
                u
                for u, weight in neighbours[v].items()
                if weight > 0 and labels[u] == labels[v] and found[u] is None
            ]
    return found


def ends_at(parts):
    """Whether there are too many of them for another level."""
    few = len(parts) <= FEW
    return len(set(parts)) == len(parts) or (not few and len(set(parts)) > 0.95 * len(parts))


def named(above, parts):
    """Communities of parts, as vertices of the level whose parts these are."""
    return [parts.index(above[part]) for part in parts]


def cycle(
    neighbours, volume, constant, words, labels, refining, max_level, seed, entries, all_classes
):
    """Communities after a way up, by moving or by refining, and one down, by moving.

    Also how many vertices of the first level moved last. ``entries``: how many are listed there;
    ``all_classes``: on every level and way, or None.
    """
    labels, below, level, refined = list(labels), [], 0, refining
    while True:
        if level:
            before, entries = entries, sum(map(len, neighbours))
            if len(words) + entries > LARGE and entries > MOST_LEFT * before:
                refining = False
        refines, seed_here = refining and level + 1 < max_level, seed + (level << 40)
        here = neighbours, volume, constant, words
        if refines:
            parts = renumbered(refine(*here, labels, seed_here))
        else:
            classes = CLASSES if level == 0 else FEWER_CLASSES
            if len(words) <= SMALL:
                classes = FEWEST_CLASSES
            moved = move(*here, labels, seed_here, all_classes or classes)
            parts = renumbered(labels)
        if level + 1 == max_level or ends_at(parts):
            break
        if refined and not refines and sum(moved) < len(words) // UNSETTLED:
            break
        below.append((here, parts))
        of = [labels.index(label) for label in labels]  # communities by their first vertices
        labels = [parts[of[parts.index(part)]] for part in range(max(parts) + 1)]
        neighbours, volume, words = contract(neighbours, volume, words, parts)
        level += 1
    if refines:
        below.append((here, None))
    for level, (here, parts) in reversed(list(enumerate(below))):
        if parts is not None:
            labels = named(labels, parts)
        classes = all_classes or FEWEST_CLASSES
        moved = move(*here, labels, seed + (level << 40) + DOWN, classes)
    return labels, sum(moved)


def parts_of_parts(neighbours, volume, constant, words, communities, max_level, seed):
    """Parts of the communities, and parts of these, the finest first; then the communities."""
    labels, down, found = named_by_first(communities), list(range(len(words))), []
    for level in range(max_level - 1):
        seed_here = seed + (level << 40)
        parts = renumbered(refine(neighbours, volume, constant, words, labels, seed_here, 1))
        if ends_at(parts):
            break
        down = [parts[v] for v in down]
        found.append(down)
        labels = [parts[labels[parts.index(part)]] for part in range(max(parts) + 1)]
        neighbours, volume, words = contract(neighbours, volume, words, parts)
        labels = named_by_first(labels)
    return [*found, renumbered(communities)]


def multilevel(
    edges, n, *, words, objective="modularity", resolution=1.0, refined=True, max_level=100,
    iterations=None, tol=1e-5, seed=0,
):  # fmt: skip
    """Communities, their parts and parts of these, from the finest, and the communities' quality.

    Vertices without an edge are left out, and are communities of their own in the end.
    """
    first = Objective(edges, n, objective, resolution)
    found = list(range(n))
    value, unit, exact = first.quality(found)
    kept = sorted({end for u, v, _ in edges for end in (u, v)})
    if not kept:
        return [found], value
    place = {v: i for i, v in enumerate(kept)}
    of_kept = [{place[u]: weight for u, weight in first.neighbours[v].items()} for v in kept]
    network = of_kept, [first.volume[v] for v in kept], first.constant, [words[v] for v in kept]
    entries = sum(1 if u == v else 2 for u, v, _ in edges)
    most = min(ITERATIONS + MORE // (len(kept) + entries), MOST_ITERATIONS)
    labels = list(range(len(kept)))
    start, alone = labels, True
    for iteration in range(1, (iterations or most) + 1):
        refining = refined and iteration > 1
        again, moved = cycle(
            *network, start, refining, max_level, seed + (iteration << 48), entries,
            CLASSES if objective == "cpm" else None,
        )  # fmt: skip
        new, _, new_exact = first.quality(among_all(again, kept, n))
        gained, better = new - value, new_exact > exact
        if alone and new_exact < exact:
            start = again
            continue
        if better:
            labels, value, exact, alone = again, new, new_exact, False
        start = labels
        if not (better and gained > tol * unit) or (moved + 1) * UNMOVED <= len(kept):
            break
    if refined:
        labels = pieces(of_kept, labels)
        value, _, _ = first.quality(among_all(labels, kept, n))
    hierarchy = parts_of_parts(*network, labels, max_level, seed)
    return [among_all(step, kept, n) for step in hierarchy], value


def edges_of(indptr, indices, weights):
    """The edges of a symmetric CSR, each once."""
    rows = chain.from_iterable([v] * (indptr[v + 1] - indptr[v]) for v in range(len(indptr) - 1))
    return [
        (v, int(indices[i]), 1 if weights is None else weights[i].item())
        for i, v in enumerate(rows)
        if v <= indices[i]
    ]
