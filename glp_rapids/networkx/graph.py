"""A networkx graph as arrays: nodes are their positions, attributes that were asked for columns.

Nodes may be anything hashable, of many types at once, so they stay in a list and `as_graph` gets
positions, ids that it need not sort. Neighbours stay in the order in which NetworkX meets them: on
it depends what its searches find first. NetworkX keeps the converted graph with its own
(`nx.config.cache_converted_graphs`), and the CSR made from it stays here: a second call converts
nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, compress
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.common.versions import at_least
from glp_rapids.device import DeviceName, choose
from glp_rapids.graph.graph import Graph as CSRGraph
from glp_rapids.ingest.read import as_graph

# From then on modularity without any weight is 0, Leiden's method is NetworkX's own, too, and
# makes the constant Potts model large, and `bfs_predecessors` is deprecated.
FROM_3_7 = at_least(nx.__version__, "3.7")


class Neighbours(NamedTuple):
    """The neighbours of every node as positions, each once, in NetworkX's order."""

    indptr: np.ndarray
    indices: np.ndarray  # int32 if that holds all positions


class Graph:
    """A graph as NetworkX hands it to this backend.

    Parameters
    ----------
    nodes : list
        The nodes in the order of the networkx graph.
    successors, predecessors : Neighbours
        Where the edges of each node lead, and whence they come; of an undirected graph both are
        the same, and an edge is there at both ends.
    parallel : array or None
        Of a multigraph, how many edges each entry of ``successors`` stands for.
    weights : dict of attribute to array
        int64 or floating, in the order of `edges`, finite and not negative.
    types : dict of attribute to set of type
        What the weights were in the networkx graph.
    directed : bool
        Whether edges go one way.
    """

    __networkx_backend__ = "glp_rapids"

    def __init__(
        self,
        nodes: list,
        successors: Neighbours,
        predecessors: Neighbours,
        parallel: np.ndarray | None,
        weights: dict[Hashable, np.ndarray],
        types: dict[Hashable, set[type]],
        directed: bool,
    ):
        self.nodes, self.successors, self.predecessors = nodes, successors, predecessors
        self.weights, self.types = weights, types
        self._parallel, self._directed = parallel, directed
        self._built: dict[tuple, CSRGraph] = {}
        self._along: dict[tuple, np.ndarray] = {}
        self.refused: dict[Hashable, str] = {}  # why weights cannot be added up, if not
        self._spare: dict[tuple, list[np.ndarray]] = {}

    def is_directed(self) -> bool:
        """Tell whether edges go one way."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Tell whether there may be parallel edges."""
        return self._parallel is not None

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the ends of all edges, in the order of the networkx graph.

        Undirected ones are there in one direction, parallel ones several times.
        """
        indptr, destination = self.successors
        source = np.repeat(np.arange(len(self)), np.diff(indptr))
        destination = destination.astype(np.int64)
        if self._parallel is not None:
            source = np.repeat(source, self._parallel)
            destination = np.repeat(destination, self._parallel)
        if self._directed:
            return source, destination
        first = source <= destination
        return source[first], destination[first]

    @cached_property
    def objects(self) -> np.ndarray:
        """The nodes as an array."""
        return np.fromiter(self.nodes, object, len(self.nodes))

    @cached_property
    def position(self) -> dict[Hashable, int]:
        """The place of each node in ``nodes``."""
        return {node: place for place, node in enumerate(self.nodes)}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.position
        except TypeError:  # it cannot be hashed, so it is no node
            return False

    @property
    def class_name(self) -> str:
        """The class of the networkx graph."""
        kind = "DiGraph" if self._directed else "Graph"
        return f"Multi{kind}" if self.is_multigraph() else kind

    def __repr__(self) -> str:
        edges = self.edges()[0].size
        return f"glp_rapids {self.class_name} with {len(self)} nodes and {edges} edges"

    @contextmanager
    def spare(self, name: str, value: Any, dtype: Any) -> Iterator[np.ndarray]:
        """Lend an array that is ``value`` at all nodes, to a search that leaves it so.

        To fill one takes longer than most searches of a few nodes. One that fails, or is not gone
        through to its end, keeps its own; of those of many threads two stay, as many as one takes.
        """
        lent = self._spare.setdefault((name, np.dtype(dtype)), [])
        try:
            array = lent.pop()
        except IndexError:
            # zeros come from the system as they are, and are written when they are read
            array = np.full(len(self), value, dtype) if value else np.zeros(len(self), dtype)
        yield array
        if len(lent) < 2:
            lent.append(array)

    def weights_along(self, weight: Hashable, *, reverse: bool = False) -> np.ndarray:
        """Return an attribute in the order of ``successors``, or of ``predecessors``.

        Of parallel edges it is the least.
        """
        reverse = reverse and self._directed
        if (weight, reverse) not in self._along:
            along = self._along_simple if not self.is_multigraph() else self._along_lightest
            self._along[weight, reverse] = along(weight, reverse)
        return self._along[weight, reverse]

    def _along_simple(self, weight: Hashable, reverse: bool) -> np.ndarray:
        # without a CSR graph, which takes .4 ms to build, ten times a search of a small graph
        weights = self.weights[weight]
        if self._directed and not reverse:
            return weights
        along = np.empty(self.successors.indices.size, weights.dtype)
        if self._directed:
            indptr, source = self.predecessors
            destination = np.repeat(np.arange(len(self)), np.diff(indptr))
            along[np.lexsort((destination, source))] = weights[np.lexsort(self.edges()[::-1])]
            return along
        indptr, destination = self.successors
        source = np.repeat(np.arange(len(self)), np.diff(indptr))
        along[source <= destination] = weights
        there, back = (np.flatnonzero(one) for one in (source < destination, source > destination))
        there = there[np.lexsort((destination[there], source[there]))]
        back = back[np.lexsort((source[back], destination[back]))]
        along[back] = along[there]
        return along

    def _along_lightest(self, weight: Hashable, reverse: bool) -> np.ndarray:
        indptr, neighbours = self.predecessors if reverse else self.successors
        rows = self.csr(weight, shortest=True, device="cpu").rows("in" if reverse else "out")
        source = np.repeat(np.arange(len(self)), np.diff(indptr))
        along = np.empty(neighbours.size, rows.weights.dtype)
        along[np.lexsort((neighbours, source))] = rows.weights
        return along

    def csr(
        self,
        weight: Hashable | None = None,
        *,
        count: bool = False,
        fold: bool = False,
        shortest: bool = False,
        device: DeviceName | None = None,
    ) -> CSRGraph:
        """Return the graph with positions as ids, isolated nodes included; it is kept.

        Parameters
        ----------
        weight : hashable, optional
            The attribute whose values are the weights; those of parallel edges are added.
        count : bool
            Without weights, parallel edges weigh their number, not one.
        fold : bool
            Ignore directions: an edge counts at both ends, a loop twice. For an undirected graph
            this changes nothing.
        shortest : bool
            Of parallel edges only the lightest counts.
        device : {"cpu", "gpu"}, optional
            Where the graph shall live.

        Raises
        ------
        KeyError
            The graph was converted without this attribute.
        """
        device = choose(device)
        fold = fold and self._directed
        shortest = shortest and self.is_multigraph()
        key = weight, count, fold, shortest, device
        if key not in self._built:
            source, destination = self.edges()
            columns = [source, destination]
            if weight is not None:
                columns.append(self.weights[weight])
            if fold:
                loops = source == destination
                columns = [np.concatenate([column, column[loops]]) for column in columns]
            parallel = self.is_multigraph() or fold
            among = "keep" if count and parallel else "merge"
            self._built[key] = as_graph(
                tuple(columns),
                directed=self._directed and not fold,
                vertices=np.arange(len(self)),
                multigraph="min" if shortest else among,
                device=device,
            )
        return self._built[key]


def convert_from_nx(
    graph: nx.Graph,
    *,
    edge_attrs: Mapping[Hashable, Any] | None = None,
    node_attrs: Mapping[Hashable, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> Graph:
    """Convert a networkx graph of any class.

    Parameters
    ----------
    graph : networkx.Graph
        Also a DiGraph, MultiGraph or MultiDiGraph.
    edge_attrs : dict of attribute to default, optional
        The edge attributes to keep as weights, and what an edge without it weighs.
    node_attrs, preserve_graph_attrs, name, graph_name
        Part of NetworkX's protocol; no function served here looks at them.
    preserve_edge_attrs, preserve_node_attrs : bool
        Not possible.

    Returns
    -------
    Graph

    Raises
    ------
    NotImplementedError
        All attributes shall be kept, or an attribute does not hold weights. NetworkX then runs
        the function itself, if it may.

    Notes
    -----
    O(n + m), in the interpreter: this, not the computation, is where the time goes.

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> BackendInterface.convert_from_nx(nx.path_graph(3))
    glp_rapids Graph with 3 nodes and 2 edges
    """
    if preserve_edge_attrs or preserve_node_attrs:
        raise NotImplementedError("name the attributes to keep in edge_attrs; not all can be kept")
    nodes = list(graph)
    position = {node: place for place, node in enumerate(nodes)}
    successors = _neighbours(graph._adj, nodes, position)
    predecessors, parallel = successors, None
    if graph.is_directed():
        predecessors = _neighbours(graph._pred, nodes, position)
    if graph.is_multigraph():
        sizes = (map(len, graph._adj[node].values()) for node in nodes)
        parallel = np.fromiter(chain.from_iterable(sizes), np.int64, successors.indices.size)
    weights, types = {}, {}
    first = None
    if edge_attrs and not graph.is_directed():
        source = np.repeat(np.arange(len(nodes)), np.diff(successors.indptr))
        first = (source <= successors.indices).tolist()
    for attribute, default in (edge_attrs or {}).items():
        weights[attribute], types[attribute] = weights_of(graph, attribute, default, first)
    converted = Graph(
        nodes, successors, predecessors, parallel, weights, types, graph.is_directed()
    )
    converted.position = position
    return converted


def _neighbours(rows: Mapping, nodes: list, position: dict) -> Neighbours:
    """Make arrays of a mapping of nodes to their neighbours."""
    found = [rows[node] for node in nodes]
    indptr = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, found), np.int64, len(nodes)), out=indptr[1:])
    small = len(nodes) <= np.iinfo(np.int32).max
    places = map(position.__getitem__, chain.from_iterable(found))
    return Neighbours(indptr, np.fromiter(places, np.int32 if small else np.int64, indptr[-1]))


def weights_of(
    graph: nx.Graph, attribute: Hashable, default: Any = 1, first: list[bool] | None = None
) -> tuple[np.ndarray, set[type]]:
    """Return an edge attribute as weights, in the order of ``graph.edges()``, and its types.

    ``first`` tells at which ends of undirected edges they are read; without it they are read at
    both, unless there are parallel ones.
    """
    if graph.is_multigraph():
        values = [value for *_, value in graph.edges(data=attribute, default=default)]
    else:
        edges = chain.from_iterable(graph._adj[node].values() for node in graph)
        edges = edges if first is None else compress(edges, first)
        values = [edge.get(attribute, default) for edge in edges]
    what = f"edge attribute {attribute!r}"
    try:
        weights = np.array(values)
    except ValueError:
        raise NotImplementedError(f"{what} holds sequences, not numbers") from None
    if weights.dtype.kind not in "biuf" or weights.ndim != 1:
        raise NotImplementedError(f"{what} holds values that are no real numbers of 64 bits")
    if weights.dtype.kind in "biu":
        # sums of votes stay below 2**62
        fits = weights.size == 0 or int(weights.max()) * weights.size < 2**61
        weights = weights.astype(np.int64 if fits else np.float64)
    elif weights.dtype.itemsize not in (4, 8):
        weights = weights.astype(np.float64)
    if weights.size and weights.min() < 0:
        raise NotImplementedError(f"{what} holds negative weights, the least {weights.min()}")
    if not np.isfinite(weights).all():
        raise NotImplementedError(f"{what} holds infinite weights or NaN")
    return weights, set(map(type, values))


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Make a networkx graph with the nodes, edges and weights of a `Graph`.

    Parameters
    ----------
    result : Graph or anything else
        What a function served here takes or returns.
    name : str, optional
        Part of NetworkX's protocol.

    Returns
    -------
    networkx.Graph or anything else
        A graph of the class it was converted from; other attributes than the weights are gone.
        What is no `Graph` is returned as it is.

    Notes
    -----
    O(n + m).

    Examples
    --------
    >>> import networkx as nx
    >>> from glp_rapids.networkx.backend import BackendInterface
    >>> there = BackendInterface.convert_from_nx(nx.MultiDiGraph([("a", "b"), ("a", "b")]))
    >>> print(BackendInterface.convert_to_nx(there))
    MultiDiGraph with 2 nodes and 2 edges
    """
    if not isinstance(result, Graph):
        return result
    graph = getattr(nx, result.class_name)()
    graph.add_nodes_from(result.nodes)
    edges = zip(*(result.objects[ends].tolist() for ends in result.edges()), strict=True)
    if not result.weights:
        graph.add_edges_from(edges)
        return graph
    rows = zip(*(column.tolist() for column in result.weights.values()), strict=True)
    graph.add_edges_from(
        (*edge, dict(zip(result.weights, row, strict=True)))
        for edge, row in zip(edges, rows, strict=True)
    )
    return graph
