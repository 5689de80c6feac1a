"""Graphs in WebGraph's BV format, as the laboratories publish them: ``.graph``, ``.properties``.

Boldi and Vigna, "The WebGraph framework I: compression techniques", WWW 2004, sections 4 and 5: a
list copies blocks from one of the lists before it, what is left is written as intervals and gaps.
The lists are decoded from the first to the last, so the ``.offsets`` file is not needed.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.device import DeviceName, LackOfMemory, choose, to_device
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.symmetrize import symmetrized
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest.webgraph import decode as bv
from glp_rapids.jit.interrupts import A_CALL

_ENDINGS = (".graph", ".properties")
_FIELDS = {
    "OUTDEGREES": (bv.DEGREE, bv.GAMMA),
    "REFERENCES": (bv.REFERENCE, bv.UNARY),
    "BLOCK_COUNT": (bv.BLOCK_COUNT, bv.GAMMA),
    "BLOCKS": (bv.BLOCK, bv.GAMMA),
    "RESIDUALS": (bv.RESIDUAL, bv.ZETA),
}
_CODES = {"GAMMA": bv.GAMMA, "DELTA": bv.DELTA, "UNARY": bv.UNARY, "ZETA": bv.ZETA}
PIECE = 1 << 20  # bytes of a file that are read at once; a multiple of 8
_PADDING = 128  # writers fill up a byte, or a machine word or two
_PROBLEMS = {
    bv.TRUNCATED: "the file ends in the middle of its list",
    bv.HUGE: "a code is longer than any value may be",
    bv.WRONG_DEGREE: "it has more successors than there are nodes",
    bv.TOO_MANY_ARCS: "with its successors there are more than the {arcs:,} arcs of the properties",
    bv.WRONG_REFERENCE: "it copies from a list before the window of {window:,} or the first node",
    bv.WRONG_BLOCKS: "its copy blocks are longer than the list they copy from, or than its own",
    bv.WRONG_INTERVALS: "its intervals have more successors than the list",
    bv.OUT_OF_RANGE: "a successor is not one of the {nodes:,} nodes",
    bv.TWICE: "it has a successor twice",
}


@dataclass(frozen=True)
class _Properties:
    nodes: int
    arcs: int
    window: int
    min_interval: int
    zeta: int
    codes: np.ndarray


@guarded
def read_webgraph(
    path: str | os.PathLike[str], *, directed: bool = True, device: DeviceName | None = None
) -> Graph:
    r"""Read a graph in the BV format of WebGraph.

    Parameters
    ----------
    path : str or path
        The basename, or one of the two files ``basename.graph`` and ``basename.properties``, of
        which both are needed.
    directed : bool
        Whether an arc goes one way only; if not, the reverse of every arc is added.
    device : {"cpu", "gpu"}, optional
        Where the graph shall live; None: on the GPU if there is one.

    Returns
    -------
    Graph
        Its vertices are 0 to n - 1, those without an arc too.

    Raises
    ------
    FileNotFoundError
        One of the two files is missing.
    ValueError
        The properties are not those of a BV graph, or name a code that is not read here; or the
        graph file is truncated, corrupted or does not belong to them. The message says where.
    MemoryError
        The graph does not fit.

    Notes
    -----
    Codes gamma, delta, zeta_k and unary for every field, any window, any minimum interval; as
    written by WebGraph (Java) and its big version, and by webgraph-rs in big-endian files. Not:
    Golomb and nibble codes, labels on arcs. O(n + m) on the CPU, in one thread. At its peak it
    takes, beside the graph: directed, one MiB; undirected, 16 bytes a vertex and a bit an arc. If
    the graph has more arcs than its file has bits, memory is asked for again as it grows, which
    may take twice as much for the time of a copy. For a GPU it is made in host memory, then moved.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from glp_rapids import read_webgraph
    >>> properties = "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=3\narcs=3\nzetak=3\n"
    >>> properties += "windowsize=0\nminintervallength=0\ncompressionflags=\n"
    >>> with TemporaryDirectory() as folder:  # 0 -> 1, 0 -> 2, 1 -> 2
    ...     _ = Path(folder, "tiny.properties").write_text(properties)
    ...     _ = Path(folder, "tiny.graph").write_bytes(bytes([0b01110111, 0b00010101, 0b11000000]))
    ...     graph = read_webgraph(Path(folder, "tiny"), device="cpu")
    >>> graph
    Graph(3 vertices, 3 entries, directed, unweighted, cpu)
    >>> graph.indptr.tolist(), graph.indices.tolist()
    ([0, 2, 3, 3], [1, 2, 2])
    """
    if not isinstance(directed, bool | np.bool_):
        raise TypeError(f"directed must be True or False, not {directed!r}")
    device = choose(device)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a path, not {path!r}")
    base = os.fsdecode(path)
    base = next((base.removesuffix(end) for end in _ENDINGS if base.endswith(end)), base)
    file, described = (Path(base + ending) for ending in _ENDINGS)
    for needed in (described, file):
        if not needed.is_file():
            raise FileNotFoundError(f"{needed}: there is no such file")
    properties = _read_properties(described)
    try:
        with file.open("rb") as stream:
            content = _Bits(stream, PIECE)
            indptr, indices = _decoded(content, file, described, properties)
        return _graph(indptr, indices, bool(directed), device)
    except MemoryError as error:
        raise LackOfMemory(
            f"{file}: there is too little memory for its {properties.nodes:,} nodes and "
            f"{properties.arcs:,} arcs ({error})"
        ) from error


def _graph(indptr: np.ndarray, indices: np.ndarray, directed: bool, device: DeviceName) -> Graph:
    nodes = indptr.size - 1
    if not directed:
        indptr, indices, _ = symmetrized(indptr, indices, in_place=True)
    arrays = to_device(indptr, device), to_device(indices, device)
    return Graph(*arrays, None, directed, VertexIds.numbers(nodes, device))


def _decoded(
    content: _Bits, file: Path, described: Path, properties: _Properties
) -> tuple[np.ndarray, np.ndarray]:
    """Decode indptr and indices of the file, checked against the properties."""
    nodes, arcs = properties.nodes, properties.arcs
    bits = 8 * content.size
    if nodes > bits:
        raise ValueError(
            f"{file} has {bits:,} bits, too few for the {nodes:,} nodes that {described.name} "
            "says: it is truncated, or belongs to another"
        )
    indptr = np.zeros(nodes + 1, dtype=np.int64)
    # few graphs have more arcs than bits, and one that is corrupted must not ask for any memory
    indices = np.empty(min(arcs, bits), dtype=index_dtype(nodes))
    state = np.zeros(2, dtype=np.int64)
    window, shortest = min(properties.window, nodes), min(properties.min_interval, nodes + 1)
    settings = (properties.codes, properties.zeta, window, shortest, arcs)
    given = min(indices.size, A_CALL)  # of the room, a part at a time: a Ctrl-C need not wait long
    while True:
        read = content.words, content.bits
        outcome = bv.decode(*read, *settings, indptr, indices[:given], state)
        if outcome == bv.FULL:
            if given == indices.size:
                # room for one more list at least
                indices.resize(min(arcs, 2 * indices.size + nodes), refcheck=False)
            given = min(indices.size, given + A_CALL)
        elif outcome != bv.TRUNCATED or content.ends:
            break
        else:
            state[bv.POSITION] = content.go_on(int(state[bv.POSITION]))
    node, position = state.tolist()
    if outcome != bv.DONE:
        problem = _PROBLEMS[outcome].format(nodes=nodes, arcs=arcs, window=properties.window)
        raise ValueError(
            f"{file}: node {node:,} of {nodes:,} cannot be read: {problem}; the file is truncated "
            f"or corrupted, or {described.name} belongs to another"
        )
    filled = int(indptr[-1])
    if filled != arcs:
        raise ValueError(
            f"{file} has {filled:,} arcs up to its last node {nodes - 1:,}, but {described.name} "
            f"says {arcs:,}: one of the two is corrupted, or belongs to another"
        )
    if content.goes_on(position):
        raise ValueError(
            f"{file} goes on behind the list of its last node {nodes - 1:,}: it is corrupted, or "
            f"{described.name} belongs to another"
        )
    return indptr, indices


class _Bits:
    """The bits of a file as 64-bit words, a piece at a time, two words of zeros behind it."""

    def __init__(self, stream: BinaryIO, piece: int) -> None:
        self.size = os.fstat(stream.fileno()).st_size
        self._stream = stream
        self._begin, self._piece = 0, piece
        self._read()

    @property
    def ends(self) -> bool:
        """Whether the piece is the last."""
        return self._begin + self.bits // 8 >= self.size

    def go_on(self, position: int) -> int:
        """Read on from the word of a bit; return where that bit is then."""
        whole = position // 64
        if not whole:
            self._piece *= 2  # what begins here is longer
        self._begin += 8 * whole
        self._read()
        return position - 64 * whole

    def goes_on(self, position: int) -> bool:
        """Tell whether behind a bit there is more than the zeros that fill up the file."""
        if 8 * (self.size - self._begin) - position > _PADDING:
            return True
        while not self.ends:
            position = self.go_on(position)
        word, offset = divmod(position, 64)
        return bool(self.words[word + 1 :].any() or self.words[word] << np.uint64(offset))

    def _read(self) -> None:
        size = min(self._piece, self.size - self._begin)
        self.words = np.zeros((size + 7) // 8 + 2, dtype=np.uint64)
        self._stream.seek(self._begin)
        read = self._stream.readinto(memoryview(self.words).cast("B")[:size])
        if read < size:  # someone cut the file off meanwhile
            self.size = self._begin + read
        if sys.byteorder == "little":
            self.words.byteswap(inplace=True)
        self.bits = 8 * read


def _read_properties(file: Path) -> _Properties:
    found = _parsed(file.read_bytes().decode("latin-1"))
    kind = found.get("graphclass")
    if kind is None:
        raise ValueError(f"{file} has no graphclass: it does not describe a graph of WebGraph")
    if kind.removeprefix("class ").rpartition(".")[2] != "BVGraph":
        mend = "; read the graph it names as underlyinggraph" if "underlyinggraph" in found else ""
        raise ValueError(f"{file} says graphclass={kind}, and only a BVGraph can be read{mend}")
    if (endian := found.get("endianness", "big")) != "big":
        raise ValueError(f"{file} says endianness={endian}, and only big can be read")
    if version := _natural(found, "version", file, 0):
        raise ValueError(f"{file} says version={version}, and only 0 can be read")
    nodes, arcs = (_natural(found, name, file) for name in ("nodes", "arcs"))
    if arcs > nodes * nodes or arcs >= 2**62:
        raise ValueError(f"{file} says arcs={arcs}, more than {nodes:,} nodes can have")
    zeta = _natural(found, "zetak", file, 3)
    if not 1 <= zeta <= 61:
        raise ValueError(f"{file} says zetak={zeta}; it must be from 1 to 61")
    return _Properties(
        nodes,
        arcs,
        _natural(found, "windowsize", file),
        _natural(found, "minintervallength", file),
        zeta,
        _codes(found.get("compressionflags", ""), file),
    )


def _natural(found: dict[str, str], name: str, file: Path, default: int | None = None) -> int:
    text = found.get(name)
    if text is None and default is not None:
        return default
    if text is None:
        raise ValueError(f"{file} has no {name}: it does not describe a BV graph of WebGraph")
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError(f"{file} says {name}={text[:40]}; it must be an integer from 0 on")
    return int(text)


def _codes(flags: str, file: Path) -> np.ndarray:
    """Parse the code of every field from flags like ``RESIDUALS_GAMMA | BLOCKS_DELTA``."""
    codes = np.array([code for _, code in sorted(_FIELDS.values())])
    named = set()
    for flag in filter(None, (flag.strip() for flag in flags.split("|"))):
        field, _, code = flag.rpartition("_")
        if field == "OFFSETS":  # of another file
            continue
        if field not in _FIELDS or code not in _CODES or field in named:
            raise ValueError(
                f"{file} says compressionflags={flags[:200]}; {flag[:40]} is named twice or cannot "
                f"be read: a flag is one of {', '.join(_FIELDS)} and one of {', '.join(_CODES)}, "
                "with _ between"
            )
        codes[_FIELDS[field][0]] = _CODES[code]
        named.add(field)
    return codes


def _parsed(text: str) -> dict[str, str]:
    """Parse the properties of a Java file: lines ``key=value``, ``key: value`` or ``key value``."""
    found = {}
    # a line that ends in an odd number of backslashes goes on in the next
    text = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    for line in re.split(r"[\r\n]+", text):
        line = line.lstrip(" \t\f")
        if line and line[0] not in "#!":
            key, value = re.fullmatch(
                r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL
            ).groups()
            found[_unescaped(key)] = _unescaped(value).strip()
    return found


def _unescaped(text: str) -> str:
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda found: chr(int(found[1], 16)) if found[1] else found[2],
        text,
    )
