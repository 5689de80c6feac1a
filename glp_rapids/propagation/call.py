"""What the functions of all variants do before a run: check and convert."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Set
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from glp_rapids.common import checks
from glp_rapids.common.calls import warn_caller
from glp_rapids.device import LITTLE, choose, free_on_gpu, gpu_of, release
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.multigpu.devices import kind_of
from glp_rapids.propagation.gpu_memory import bytes_on_gpu
from glp_rapids.propagation.memory import gpu_bytes_of
from glp_rapids.propagation.options import Options, SweepOptions
from glp_rapids.propagation.ways import WAYS

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.warm_start import Start

SEVERAL = 100  # vertices, of which none is in an earlier result by mistake, not by chance


def results() -> ModuleType:
    """Return the module that makes frames; pandas is imported at the first call."""
    from glp_rapids.propagation import results

    return results


def prepare(graph: Any, options: SweepOptions, **defaults: Any) -> tuple[BaseGraph, Options]:
    """Return the graph of a call and the options of its run, which are checked first."""
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.ingest.read import as_any_graph

    names = EdgeOptions.__annotations__
    edges = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    refuse_unknown(others)
    run_options = Options(**{**defaults, **others})
    if run_options.devices is not None:
        return _for_devices(graph, edges, run_options)
    if run_options.memory_limit is not None:
        run_options.check_limit(choose(edges.get("device")))
    if not _may_stream(graph, choose(edges.get("device")), run_options):
        return as_any_graph(graph, **edges), run_options
    streaming = replace(run_options, streams_to="gpu")
    limit = run_options.memory_limit
    if run_options.way == "auto" and limit is None:
        if isinstance(graph, BaseGraph) and not _fits(gpu_bytes_of(graph) - _there(graph)):
            return as_any_graph(graph, **{**edges, "device": "cpu"}), streaming
        try:
            made = as_any_graph(graph, **edges)
        except MemoryError:  # to build it there takes more than to run on it
            release()
        else:
            fits = _fits(gpu_bytes_of(made) - bytes_on_gpu(made))
            if fits or not _streams(made, run_options):
                return made, run_options
            return made.to("cpu"), streaming
    made = as_any_graph(graph, **{**edges, "device": "cpu"})
    if not _streams(made, run_options):
        return made.to("gpu"), run_options
    needed = gpu_bytes_of(made)
    fits = limit is not None and needed <= limit and _fits(needed - _there(made))
    if run_options.way == "auto" and fits:
        return made.to("gpu"), run_options
    return made, streaming


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Refuse keywords that are no `SweepOptions`; `Options` has fields that are no keywords."""
    checks.refuse_unknown(options, SweepOptions.__annotations__)


def _for_devices(
    graph: Any, edges: dict[str, Any], options: Options
) -> tuple[BaseGraph, Options]:  # fmt: skip
    """Return the graph of a call whose devices hold parts of it, and the options of its run.

    GPUs get their parts from host memory where one of them alone does not hold the whole.
    """
    from glp_rapids.ingest.read import as_any_graph

    kind = kind_of(options.devices)
    if (given := edges.get("device")) not in (None, kind):
        raise ValueError(
            f"device={given!r} is none of devices={list(options.devices)}; leave device out"
        )
    parted = replace(options, streams_to="gpu")
    if kind == "cpu" or _is_on_gpu(graph):
        found = as_any_graph(graph, **{**edges, "device": kind}), options
    elif options.memory_limit is not None or _has_to_stream(graph, options):
        options.check_limit("gpu")
        found = as_any_graph(graph, **{**edges, "device": "cpu"}), parted
    else:
        found = _on_first_or_parted(graph, edges, options, parted)
    made, chosen = found
    if made.scheme and (chosen.streams_to is None or not _streams(made, chosen)):
        raise ValueError(
            "devices: the lists of a compressed graph are cut for several GPUs where they are "
            "streamed from host memory (graph.to('cpu')), if it is undirected, without weights, in "
            "the order of the ids and under the scheme 'packed'; pass graph.to_graph(), or leave "
            "devices out"
        )
    return found


def _has_to_stream(graph: Any, options: Options) -> bool:
    """Tell whether several GPUs can have a graph in host memory only as streams."""
    from glp_rapids.graph.graph import BaseGraph

    asked = options.way != "auto" and WAYS[options.way].streamed
    return asked or (isinstance(graph, BaseGraph) and bool(graph.scheme))


def _on_first_or_parted(
    graph: Any, edges: dict[str, Any], options: Options, parted: Options
) -> tuple[BaseGraph, Options]:
    """Return a graph on the first GPU if it holds the whole and its part, else in host memory."""
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.ingest.read import as_any_graph

    def fits(known: BaseGraph, there: int) -> bool:
        readers = known.number_of_edges * known.index_dtype.itemsize // len(options.devices or ())
        return _fits(gpu_bytes_of(known) + readers - there)

    on_host = partial(as_any_graph, graph, **{**edges, "device": "cpu"})
    if isinstance(graph, BaseGraph) and not fits(graph, _there(graph)):
        return on_host(), parted
    try:
        made = as_any_graph(graph, **{**edges, "device": "gpu"})
    except MemoryError:  # to build it there takes more than to hold a part
        release()
        return on_host(), parted
    if fits(made, bytes_on_gpu(made)):
        return made, options
    return made.to("cpu"), parted


def _may_stream(graph: Any, device: str, options: Options) -> bool:
    """Tell whether lists of a graph may have to be streamed from host memory to a GPU."""
    from glp_rapids.graph.graph import BaseGraph

    if device != "gpu" or _is_on_gpu(graph):
        return False
    if isinstance(graph, BaseGraph) and not _streams(graph, options):
        return False
    asked = options.way != "auto" and WAYS[options.way].streamed
    return asked or (options.way, options.strategy) == ("auto", "auto")


def _streams(graph: BaseGraph, options: Options) -> bool:
    """Tell whether a GPU can be sent the lists of a graph strip by strip, in the form they have."""
    if not graph.scheme:
        return options.way != "streamed packed"
    if options.way != "auto" and WAYS[options.way].form == "plain":
        return False
    # Numba waits for the first run: `import glp_rapids` stays light.
    from glp_rapids.propagation.engines.gpu_compressed import streams_packed

    return streams_packed(graph)


def _fits(needed: int) -> bool:
    """Tell whether so much is free on the GPU, or may be; little always is."""
    if needed < LITTLE:
        return True
    free = free_on_gpu()
    return free is None or needed <= free


def _there(graph: BaseGraph) -> int:
    """Count what a graph in host memory has on the GPU, from an earlier call."""
    return bytes_on_gpu(graph._derived.get("gpu"))


def _is_on_gpu(graph: Any) -> bool:
    """Tell whether a graph, or what one is made of, lies in device memory."""
    from glp_rapids.graph.graph import BaseGraph

    if isinstance(graph, BaseGraph):
        return graph.device == "gpu"
    if "cudf" in sys.modules and hasattr(graph, "as_gpu_object"):  # a proxy of cudf.pandas
        return True
    if isinstance(graph, tuple):
        return any(map(_is_on_gpu, graph))
    rooms = ("cudf", "cugraph", "cupy", "cupyx", "dask_cudf", "pylibcugraph")
    return type(graph).__module__.split(".")[0] in rooms or gpu_of(graph) is not None


def warm(graph: BaseGraph, initial: Any, touched: Any, **how: Any) -> Start | None:
    """Return where a warm run begins; None if the run is no warm one."""
    if initial is None:
        if touched is not None:
            raise ValueError("touched is for initial=: it says what changed since that result")
        return None
    from glp_rapids.propagation.warm_start import start_of

    start = start_of(graph, initial, touched, **how)
    # what is computed, or read, to be counted is not counted
    counted = hasattr(initial, "iloc") or isinstance(initial, Mapping | list | tuple | Set)
    some = counted and not hasattr(initial, "compute") and len(initial)
    if some and start.new.size == graph.number_of_vertices >= SEVERAL:
        warn_caller(
            "initial names no vertex of the graph: the run only settles, from every vertex alone; "
            "are its ids those of the graph?"
        )
    return start


def settling(initial: Any) -> dict[str, int]:
    """Return the defaults of a warm run: who has a label already need not explore."""
    return {} if initial is None else {"explore": 0}


def refuse_warm(options: SweepOptions, function: str, why: str) -> None:
    """Refuse what a warm start would be begun with, and say why there is none."""
    for name in ("initial", "touched"):
        if name in options:
            raise TypeError(f"{function} has no option {name!r}: {why}")


def refuse(options: SweepOptions, function: str, *names: str) -> None:
    """Refuse options that other variants have and that mean nothing here, and unknown ones."""
    for name in names:
        if name in options:
            raise TypeError(f"{function} has no option {name!r}: it makes max_iter sweeps")
    checks.refuse_unknown(options, SweepOptions.__annotations__.keys() - set(names))
