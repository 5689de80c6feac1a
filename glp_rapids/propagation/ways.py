"""The ways to hold the neighbour lists of a run, and which of them a graph can go.

On a CPU streamed lists stay where they lie, in memory or in a mapped file, and cost nothing but a
buffer. So a plain graph is never packed there unless it is asked for: the packed lists would come
on top of the plain ones, which the caller holds. On a GPU there is one way for each form of lists
that are there; plain ones in host memory are streamed where the limit of memory is too low.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from glp_rapids.graph.rows import CSR

if TYPE_CHECKING:
    from glp_rapids.compressed.graph import CompressedGraph
    from glp_rapids.graph.graph import BaseGraph, Graph
    from glp_rapids.propagation.options import Options


class Way(NamedTuple):
    """How lists are held: in which form, and whether those of a class come strip by strip.

    ``devices``: where a run can go this way.
    """

    form: str
    streamed: bool
    devices: tuple[str, ...] = ("cpu", "gpu")


WAYS = {
    "plain": Way("plain", streamed=False),
    "packed": Way("compressed", streamed=False),
    "streamed packed": Way("compressed", streamed=True),
    "streamed plain": Way("plain", streamed=True),
    "hybrid": Way("plain", streamed=True, devices=("gpu",)),  # beside the host's cores
}

ON_CPU = tuple(name for name, way in WAYS.items() if "cpu" in way.devices)

# By device and form of the rows given: the ways in the order in which they are tried, and those
# that can be asked for besides.
TRIED = {
    ("cpu", "plain"): ("plain", "streamed plain"),
    ("cpu", "compressed"): ("packed", "streamed packed"),
    ("gpu", "plain"): ("plain",),
    ("gpu", "compressed"): ("packed",),
}
# What a graph in host memory can go on a GPU that it is streamed to, by the form of its rows.
# Which compressed lists can, `engines.gpu_compressed.streams_packed` tells.
STREAMED_TO_GPU = {"plain": "streamed plain", "compressed": "streamed packed"}
SHARED_WITH_GPU = {"plain": ("hybrid",), "compressed": ()}  # if it is asked for
ASKED_FOR = {("cpu", "plain"): ("packed", "streamed packed"), ("cpu", "compressed"): ("plain",)}


def decoded_for_good(graph: BaseGraph, options: Options) -> bool:
    """Tell whether compressed lists have to become plain ones: a neighbour may be in them twice."""
    return bool(graph.scheme) and graph.directed and options.direction == "both"


def ways_of(graph: BaseGraph, options: Options) -> tuple[str, ...]:
    """Return the ways that a run may go, in the order in which they are tried.

    Raises
    ------
    ValueError
        ``options.way`` is none that this graph can go on this device.
    """
    device, way = graph.device, options.way
    both = graph.directed and options.direction == "both"
    form = "compressed" if graph.scheme and not both else "plain"
    tried, asked_for = TRIED[device, form], ASKED_FOR.get((device, form), ())
    if options.devices is not None:
        tried, asked_for = ("plain",), ()
        if form == "compressed":
            tried = (STREAMED_TO_GPU[form],)
        elif options.streams_to is not None:  # from host memory
            asked_for = (STREAMED_TO_GPU[form],)
    elif options.streams_to is not None:
        tried, asked_for = (STREAMED_TO_GPU[form],), SHARED_WITH_GPU[form]
    if way == "auto":
        return tried
    possible = (*tried, *asked_for)
    if both:
        possible = tuple(name for name in possible if WAYS[name].form == "plain")
    if way in possible:
        return (way,)
    choices = " or ".join(map(repr, possible))
    if device == "gpu" and WAYS[way].streamed:
        reason = "lists come from host memory; the graph is on the GPU, so pass graph.to('cpu')"
        if WAYS[way].form == "compressed":
            reason = "it is for compressed graphs in host memory that are undirected, "
            reason += "without weights and in the order of the ids; for others give device='cpu'"
        elif form == "compressed":
            reason = "a compressed graph has no plain lists to stream: pass graph.to_graph()"
        raise ValueError(f"way={way!r} is not for this graph on a GPU: {reason}, or take {choices}")
    if device not in WAYS[way].devices:
        reason = f"a {device.upper()} alone has no part for another device; give device='gpu'"
    elif both and WAYS[way].form == "compressed":
        reason = "direction='both' may name a neighbour twice, which no compressed list can"
    elif WAYS[way].form == "compressed":
        reason = "on a GPU it is for compressed graphs: pass glp_rapids.compress(graph)"
    else:
        reason = "it is for plain graphs: pass glp_rapids.as_graph(graph)"
    raise ValueError(f"way must be {choices} here, not {way!r}; {reason}")


def in_form(graph: BaseGraph, form: str, options: Options) -> BaseGraph:
    """Return the graph with lists of a form; one that is made for it is kept on the graph."""
    if form == "compressed" and not graph.scheme:
        return graph.keep("packed", partial(packed, graph))
    if form == "plain" and graph.scheme and not decoded_for_good(graph, options):
        return graph.keep("plain", graph.to_graph)
    return graph


def packed(graph: Graph) -> CompressedGraph:
    """Compress a graph as `glp_rapids.compress` does by default."""
    from glp_rapids.compressed.graph import encoded
    from glp_rapids.compressed.options import layout_of

    layout = layout_of("auto", "speed", None, 0, None)
    rows = CSR(graph.indptr, graph.indices, graph.weights)
    return encoded(rows, layout, graph.directed, graph.vertices, None)
