"""Files of the WebGraph framework, written the obvious way: sections 4 and 5 of the paper.

The WebGraph framework I: compression techniques (Boldi and Vigna, WWW 2004). A text is of "0" and
"1", the first bit first.
"""

import numpy as np
import pytest

DEFAULTS = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "RESIDUALS": "ZETA",
}


def unary(x):
    return "0" * x + "1"


def gamma(x):
    binary = f"{x + 1:b}"
    return unary(len(binary) - 1) + binary[1:]


def delta(x):
    binary = f"{x + 1:b}"
    return gamma(len(binary) - 1) + binary[1:]


def zeta(x, k):
    x, h = x + 1, 0
    while x >= 2 ** ((h + 1) * k):
        h += 1
    return unary(h) + minimal_binary(x - 2 ** (h * k), 2 ** ((h + 1) * k) - 2 ** (h * k))


def minimal_binary(x, below):
    """The shortest code of [0, below): the first ones are a bit shorter than the others."""
    width = (below - 1).bit_length()
    shorter = 2**width - below
    if x < shorter:
        return f"{x:0{width - 1}b}" if width > 1 else ""
    return f"{x + shorter:0{width}b}" if width else ""


def folded(x):
    return 2 * x if x >= 0 else -2 * x - 1


def runs(flags):
    """Lengths of alternating runs of True and False, the first of True and perhaps empty."""
    lengths, current = [0], True
    for flag in flags:
        if flag != current:
            lengths.append(0)
            current = flag
        lengths[-1] += 1
    return lengths


class Encoder:
    def __init__(
        self, lists, window=7, min_interval=4, k=3, max_references=3, choose=None, **codes
    ):
        self.lists, self.window, self.min_interval, self.k = lists, window, min_interval, k
        self.max_references, self.choose = max_references, choose
        self.codes = DEFAULTS | codes
        self.chain = [0] * len(lists)

    def code(self, field, x):
        name = self.codes[field]
        if name == "ZETA":
            return zeta(x, self.k)
        return {"GAMMA": gamma, "DELTA": delta, "UNARY": unary}[name](x)

    def bits(self):
        return "".join(map(self.node, range(len(self.lists))))

    def node(self, node):
        successors = self.lists[node]
        degree = self.code("OUTDEGREES", len(successors))
        if not successors:
            return degree
        if self.window == 0:
            return degree + self.rest(node, successors)
        ways = [
            back
            for back in range(min(self.window, node) + 1)
            if not back
            or (self.lists[node - back] and self.chain[node - back] < self.max_references)
        ]
        texts = {back: self.from_reference(node, back) for back in ways}
        best = self.choose(ways) if self.choose else min(ways, key=lambda back: len(texts[back]))
        self.chain[node] = self.chain[node - best] + 1 if best else 0
        return degree + texts[best]

    def from_reference(self, node, back):
        text, successors = self.code("REFERENCES", back), self.lists[node]
        if back:
            known, own = self.lists[node - back], set(successors)
            lengths = runs([vertex in own for vertex in known])
            blocks = lengths[:-1]  # the last run needs no telling: copied or skipped by parity
            text += self.code("BLOCK_COUNT", len(blocks))
            for i, length in enumerate(blocks):
                text += self.code("BLOCKS", length if i == 0 else length - 1)
            copied = set(known)
            successors = [vertex for vertex in successors if vertex not in copied]
        return text + self.rest(node, successors)

    def rest(self, node, successors):
        if not successors:
            return ""
        intervals, residuals, text = [], [], ""
        start = 0
        for end in range(1, len(successors) + 1):
            if end == len(successors) or successors[end] != successors[end - 1] + 1:
                if self.min_interval and end - start >= self.min_interval:
                    intervals.append((successors[start], end - start))
                else:
                    residuals += successors[start:end]
                start = end
        if self.min_interval:
            text += gamma(len(intervals))
            previous = None
            for left, length in intervals:
                text += gamma(folded(left - node) if previous is None else left - previous - 1)
                text += gamma(length - self.min_interval)
                previous = left + length
        for i, vertex in enumerate(residuals):
            gap = folded(vertex - node) if i == 0 else vertex - residuals[i - 1] - 1
            text += self.code("RESIDUALS", gap)
        return text

    def properties(self):
        flags = [f"{field}_{code}" for field, code in self.codes.items() if code != DEFAULTS[field]]
        return {
            "graphclass": "it.unimi.dsi.webgraph.BVGraph",
            "version": 0,
            "nodes": len(self.lists),
            "arcs": sum(map(len, self.lists)),
            "windowsize": self.window,
            "maxrefcount": self.max_references,
            "minintervallength": self.min_interval,
            "zetak": self.k,
            "compressionflags": " | ".join(flags),
        }


def packed(text):
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))


def write(base, properties, content):
    if isinstance(properties, dict):
        properties = "#BVGraph properties\n#Mon Jan 05 2004\n" + "".join(
            f"{name}={value}\n" for name, value in properties.items()
        )
    base.with_suffix(".properties").write_text(properties, encoding="latin-1")
    base.with_suffix(".graph").write_bytes(content)
    return base


def lists_of(graph):
    return [row.tolist() for row in np.split(graph.indices, graph.indptr[1:-1])][
        : graph.number_of_vertices
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("webgraph")


# Written by hand from the definitions, with the default codes, window 7 and intervals from 4 on.
BY_HAND = [
    "00110",  # node 0 has 5 successors: gamma of 5
    "1",  # no reference
    "010",  # one interval
    "011",  # from 1, which is 0 + 1, folded to 2
    "1",  # of length 4 = 4 + 0
    "01010011",  # the residual 9 = 0 + 9, folded to 18: 19 is 8 + 11, in six bits 8 + 11
    "00101",  # node 1 has 4 successors
    "01",  # copies from node 0: 1 2 3 4 9
    "00101",  # 4 blocks and the rest
    "1",  # copies none
    "1",  # skips one: 1
    "010",  # copies two: 2 3
    "1",  # skips one: 4; the rest is copied: 9
    "1",  # no interval
    "1010",  # the residual 0 = 1 - 1, folded to 1
    "1",  # node 2 has no successor
    "00110",  # node 3 has 5
    "0001",  # copies from node 0
    "1",  # 0 blocks and the rest: all
    *["1"] * 6,  # nodes 4 to 9
]
HAND_LISTS = [[1, 2, 3, 4, 9], [0, 2, 3, 9], [], [1, 2, 3, 4, 9], *[[] for _ in range(6)]]
HAND_PROPERTIES = {
    "graphclass": "it.unimi.dsi.webgraph.BVGraph", "version": 0, "nodes": 10, "arcs": 14,
    "windowsize": 7, "maxrefcount": 3, "minintervallength": 4, "zetak": 3, "compressionflags": "",
}  # fmt: skip


def hand(folder, content=None, **changes):
    properties = {k: v for k, v in (HAND_PROPERTIES | changes).items() if v is not None}
    return write(
        folder / "hand", properties, packed("".join(BY_HAND) if content is None else content)
    )
