"""The layouts and the rows that compressed rows are tested with, on both kinds of processor."""

from functools import cache

import numba
import numpy as np
from graphs import GRAPHS

from glp_rapids import as_graph
from glp_rapids.compressed.format import neighbour_list
from glp_rapids.compressed.format.layout import Codes, Layout
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.target import cpu_target

# Every value of every setting under both schemes, and each pair of them somewhere. Under "packed"
# codes are without meaning.
LAYOUTS = [
    Layout("cgr"),
    Layout("cgr", min_interval=0, segment=8, codes=Codes(*["delta"] * 6)),
    Layout("cgr", min_interval=2, raw_below=8, segment=32, codes=Codes(*["gamma"] * 6)),
    Layout("cgr", min_interval=4, raw_below=32, segment=8, codes=Codes(*["zeta3"] * 6)),
    Layout("cgr", min_interval=1, segment=1, codes=Codes(*["zeta2", "delta"] * 3)),
    Layout("cgr", min_interval=2, segment=8, codes=Codes(*["zeta5", "zeta8", "zeta7"] * 2)),
    Layout("packed"),
    Layout("packed", min_interval=0, raw_below=8, segment=128),
    Layout("packed", min_interval=2, segment=8),
    Layout("packed", min_interval=4, raw_below=32, segment=32, codes=Codes(*["delta"] * 6)),
    Layout("packed", min_interval=1, segment=1),
    Layout("packed", min_interval=3, raw_below=40, segment=16),
    Layout("packed", min_interval=0, segment=1 << 30),
]


def rows_from(neighbours, dtype=np.int32):
    indptr = np.cumsum([0, *map(len, neighbours)])
    indices = [entry for entries in neighbours for entry in entries]
    return CSR(indptr.astype(np.int64), np.array(indices, dtype), None)


def everything(n):
    """A vertex with all vertices as neighbours, some with every second, some with none."""
    return [range(n), *[range(i % 3, n, 2) if i % 2 else [] for i in range(1, n)]]


AWKWARD = {
    "no vertex": [],
    "no edges": [[] for _ in range(70)],
    "all neighbours": everything(100),
    "hub at the end": [[] for _ in range(999)] + [[*range(0, 500), *range(501, 1000, 3)]],
    "far apart": [[0, 299_999], *[[i] for i in range(1, 40)], *[[] for _ in range(299_960)]],
    "one block": [[(7 * i) % 32] for i in range(32)],
}


@cache
def graphs():
    named = {name: rows_from(neighbours) for name, neighbours in AWKWARD.items()}
    for name, keywords in GRAPHS.items():
        named[name] = as_graph(**keywords(), device="cpu")
    return named


def as_string(words, size):
    return "".join(str(int(words[bit >> 5]) >> (bit & 31) & 1) for bit in range(size))


@cache
def on_a_part(scheme):
    """The functions on parts, callable: one that writes, measures, reads and skips a part."""
    on_lists = neighbour_list.build(scheme, cpu_target())
    size, write = on_lists.scheme.part_size, on_lists.scheme.write_part
    read, skip = on_lists.read_part, on_lists.skip_list

    @numba.njit
    def there_and_back(ids, v, settings, words, tables, out):
        behind = write(words, tables, 5, ids, 0, ids.size, v, settings)
        measured = size(tables, ids, 0, ids.size, v, settings)
        again = read(words, tables, 5, v, ids.size, settings, out, 0)
        return behind, 5 + measured, again, skip(words, tables, 5, ids.size, settings)

    return there_and_back
