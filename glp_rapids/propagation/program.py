"""A program: label propagation as four small functions (GLP, SIGMOD'21, section 3.1).

A variant of label propagation says what a vertex tells its neighbours (``pick_label``), what it
reads from each (``load_neighbor``), how a label is scored (``label_score``) and what a vertex
writes down (``update_vertex``). The four are plain scalar Python; `compile_program` turns the same
source into CPU and GPU code. What an engine may take advantage of is found by comparing their
bytecode with classic label propagation's, so a variant pays only for what it changes.
"""

from __future__ import annotations

import inspect
import keyword
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from glp_rapids.common.checks import errors_named, meant_by, shown
from glp_rapids.device import array_module
from glp_rapids.jit.fingerprint import fingerprint, of_package

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph

FUNCTIONS = ("pick_label", "load_neighbor", "label_score", "update_vertex")
ATTRIBUTES = ("skip_inactive", "count_volumes", "all_sweeps", "largest_amount", "result_columns")
ALIKE = 0.8  # of two names: from here on one is taken for a slip of the other


class Program:
    """Describe a variant of label propagation by four functions; this one is the classic.

    Subclass it and replace what differs. The functions take no ``self``: they are compiled, for
    CPU and GPU alike, from the plain scalar Python that you write. They may call other plain
    functions of your module, and use numbers and arrays of your module, or of others, as constants.

    ``state`` is a named tuple. Always there: ``state.labels`` (what every vertex says, indices of
    vertices; negative means that the vertex is silent), ``state.sweep`` (from 1; 0 before the
    first) and ``state.seed``. With ``count_volumes`` also ``state.volume`` (how many vertices say
    a label). The rest is what ``initial_state`` returns.

    Attributes
    ----------
    skip_inactive : bool
        Set it to True if the outcome for a vertex depends only on what its neighbours say (not on
        the sweep, on volumes, or on state that changes while labels stand). Then a vertex none of
        whose neighbours changed is not evaluated again. False is always right, and slower.
    count_volumes : bool
        Keep ``state.volume`` up to date: class by class, never in the middle of one.
    all_sweeps : bool
        Set it to True if what counts is how many sweeps there were, as where each writes into a
        memory. Then ``max_iter`` sweeps are made, the first ``explore`` of them exploring, whatever
        changes; ``converged`` says whether the last one would have ended the run.
    largest_amount : float or None
        The largest absolute amount that ``load_neighbor`` returns, if it returns real numbers
        of its own making. None stands for 1024 times the largest edge weight (for 1024 where no
        edge weighs anything). Amounts are added in units of a power of two, at most this times the
        entries of the longest row by 2**61: one of up to half a unit counts as 0, and nobody is
        warned of it.
    result_columns : tuple of str
        One-dimensional arrays of the state, one value a vertex, that ``propagate`` adds to its
        result.

    Notes
    -----
    All four functions are defined by GLP (Ye et al., SIGMOD 2021, section 3.1). A class of
    vertices is evaluated as a whole (``load_neighbor``, ``label_score``) before any of it is
    updated (``update_vertex``, ``pick_label``), so ``update_vertex`` may write all that belongs
    to ``v`` and must not write or read what belongs to another vertex. What ``pick_label`` returns
    is written into ``state.labels``, in the place of what ``update_vertex`` wrote there. A label
    whose score is ``nan`` never wins. Votes are added in 64-bit fixed point. Sums, products,
    quotients and square roots of your own are the same to the last bit on CPU and GPU; ``exp``,
    ``log`` and their like are not: put them into ``initial_state``. On a GPU square roots are
    ``math.sqrt``; NumPy's is not there. Random numbers are refused, as they would be others in
    every run; `random_below` draws the same in each.

    Nothing in them may raise: threads run them together, and on a GPU an error is seen by nobody.
    So what could raise is refused when it is compiled, with the reason: ``raise``, ``assert``,
    lists and arrays made on the way (memory may lack), tuples at an index and ranges with a step
    that only a run knows, whole numbers to the power of such. Division by zero gives ``inf``,
    ``nan`` or, of whole numbers, 0. A label that is no vertex and an amount too large to add up
    end the run with a ValueError that names the vertex. Indices into ``state`` are not checked,
    and what ``update_vertex`` writes into ``state.labels`` wraps around if 32 bits do not hold it.

    Examples
    --------
    Labels of well-connected vertices count more:

    >>> import glp_rapids, pandas as pd
    >>> class ByDegree(glp_rapids.Program):
    ...     def load_neighbor(v, u, weight, state):
    ...         return state.labels[u], weight * state.degree[u]
    ...     def initial_state(self, graph):
    ...         return {"degree": graph.degree}
    >>> edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4], "dst": [1, 2, 2, 4, 5, 5]})
    >>> glp_rapids.propagate(edges, ByDegree())["partition"].tolist()
    [0, 0, 0, 1, 1, 1]
    """

    skip_inactive: ClassVar[bool] = False
    count_volumes: ClassVar[bool] = False
    all_sweeps: ClassVar[bool] = False
    largest_amount: float | None = None
    # Not checked: the most that all amounts a vertex hears add up to, where that is known.
    _largest_sum: ClassVar[float | None] = None
    # `initial_state` makes all its arrays, and keeps none: they need not be copied.
    _gives_state: ClassVar[bool] = False
    _asks_for_readers: ClassVar[bool] = False  # `initial_state` does
    result_columns: ClassVar[tuple[str, ...]] = ()

    def initial_state(self, graph: BaseGraph) -> Mapping[str, Any]:
        """Return the state by name: arrays (first axis: vertices), numbers.

        ``labels`` may be among them: what the vertices say at first (by default, themselves).
        A `CompressedGraph` has ``degree`` and ``number_of_vertices`` like any other; who needs the
        lists themselves takes them from ``graph.to_graph()``.
        """
        return {}

    def _bytes_a_vertex(self, index_dtype: Any) -> int:
        """Return what the state takes, where that is known before it is made."""
        return 0

    @staticmethod
    def pick_label(v, sweep, state):
        """Return the label that v says to its neighbours until its next update."""
        return state.labels[v]

    @staticmethod
    def load_neighbor(v, u, weight, state):
        """Return the label that v hears from u, and the amount of u's vote for it."""
        return state.labels[u], weight

    @staticmethod
    def label_score(v, label, freq, state):
        """Return the score of a label whose votes at v add up to freq."""
        return freq

    @staticmethod
    def update_vertex(v, label, score, state):
        """Write down that label won at v."""
        state.labels[v] = label


@dataclass(frozen=True)
class Traits:
    """What an engine may rely on, found from a program's code and from the graph."""

    default_pick: bool
    default_load: bool
    default_score: bool
    default_update: bool
    skip_inactive: bool
    count_volumes: bool
    weighted: bool
    trusted: bool  # the functions are this package's own
    real_amounts: bool = False
    real_scores: bool = False
    small_sums: bool = False  # all votes are whole, and 32 bits hold their sum at every vertex

    @property
    def narrow_votes(self) -> bool:
        """Sums of votes take 32 bits on a GPU, which adds them in one step."""
        return self.unit_votes or self.small_sums

    @property
    def unit_votes(self) -> bool:
        """Every vote is one for the neighbour's label."""
        return self.default_load and not self.weighted

    @property
    def growing_scores(self) -> bool:
        """A score is the sum of votes that are never negative: the best is known at all times."""
        return self.default_load and self.default_score

    @property
    def bears_changes(self) -> bool:
        """A winner that is ahead stays the winner until so many neighbours have changed."""
        return self.plain and self.growing_scores

    @property
    def checks_heard(self) -> bool:
        """Labels that a user's ``load_neighbor`` returns, and its whole amounts, are checked."""
        return not (self.default_load or self.trusted)

    @property
    def checks_amounts(self) -> bool:
        """Amounts may be too large, or no numbers."""
        return self.checks_heard or (self.real_amounts and not self.default_load)

    @property
    def checks_said(self) -> bool:
        """Labels that a user's functions make vertices say are checked."""
        return not (self.plain or self.trusted)

    @property
    def plain(self) -> bool:
        """A winner is written into the labels, and nothing else happens."""
        return self.default_pick and self.default_update


def functions_of(program: Program) -> dict[str, Callable]:
    """Return the program's four functions as plain functions."""
    _refuse_misspelt(program)
    found = {}
    for name in FUNCTIONS:
        function = inspect.getattr_static(program, name)
        if isinstance(function, staticmethod):
            function = function.__func__
        if not isinstance(function, types.FunctionType):
            raise TypeError(
                f"{type(program).__name__}.{name} must be a plain Python function, not "
                f"{type(function).__name__}; write `def {name}(...)` without a decorator"
            )
        if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            raise TypeError(f"{type(program).__name__}.{name} must return, not yield or await")
        expected = getattr(Program, name).__code__.co_argcount
        if (given := function.__code__.co_argcount) != expected:
            raise TypeError(
                f"{type(program).__name__}.{name} takes {given} parameters, not {expected}: "
                f"write `def {name}{inspect.signature(getattr(Program, name))}` (no self)"
            )
        found[name] = function
    return found


def _refuse_misspelt(program: Program) -> None:
    """Raise if something is called nearly as what a program may set, and nobody would look at it.

    A method is compared with the functions, anything else with the attributes.
    """
    kind = type(program)
    own = kind.__mro__[: kind.__mro__.index(Program)]
    for name, value in chain.from_iterable(vars(one).items() for one in (program, *own)):
        method = callable(getattr(value, "__func__", value))
        known = (*FUNCTIONS, "initial_state") if method else ATTRIBUTES
        if name in known:
            continue
        if meant := meant_by(name, known, ALIKE):
            raise TypeError(
                f"{kind.__name__}.{name} would never be {'called' if method else 'read'}; did you "
                f"mean {meant}? If not, choose another name"
            )


def traits_of(program: Program, *, weighted: bool) -> Traits:
    """Find out what an engine may rely on."""
    functions = functions_of(program)
    default = {
        name: fingerprint(function) == fingerprint(getattr(Program, name))
        for name, function in functions.items()
    }
    return Traits(
        default_pick=default["pick_label"], default_load=default["load_neighbor"],
        default_score=default["label_score"], default_update=default["update_vertex"],
        skip_inactive=bool(program.skip_inactive) or all(default.values()),
        count_volumes=bool(program.count_volumes), weighted=weighted,
        trusted=all(default[name] or of_package(one) for name, one in functions.items()),
    )  # fmt: skip


RESERVED = ("sweep", "seed", "volume")


def _numbers(array: Any, label: str) -> Any:
    """Refuse an array that no GPU can work with; return one in native byte order."""
    if np.ma.is_masked(array):
        raise ValueError(f"{label} has masked values; fill them, as with .filled(0)")
    if array_module(array) is np and not hasattr(array, "to_cupy"):
        array = np.asarray(array)
    dtype = array.dtype
    if dtype.kind not in "biufc" or dtype.itemsize > 16 or dtype.char in "egG":
        raise TypeError(
            f"{label} is an array of {dtype}; use integers, booleans, float32 or float64"
        )
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _check_field(name: Any, name_of: str) -> None:
    """Raise unless a name can be one of a named tuple's."""
    taken = not (isinstance(name, str) and name.isidentifier()) or name in RESERVED
    if taken or name.startswith("_") or keyword.iskeyword(name):
        raise ValueError(
            f"{name_of}.initial_state names a field {name!r}; choose an identifier other than "
            f"{', '.join(RESERVED)}, with no _ in front, and no keyword of Python"
        )


def _references(held: list[Any]) -> int:
    """Count, as Python does, who refers to what alone is in a list."""
    return sys.getrefcount(held[0])


BY_THE_LIST_ALONE = _references([object()])  # versions of Python count differently on the way


def _owned(held: list[Any]) -> Any:
    """Return the array in a list, as one that a run may write into; ``held`` is empty then.

    If nobody else refers to it, nor to its memory, it is taken over: a second one may be what does
    not fit. A GPU's arrays may share memory with others and not tell; they are copied.
    """
    taken_over = (
        type(held[0]) is np.ndarray
        and held[0].flags.owndata
        and held[0].flags.carray  # C-contiguous, as code is compiled for, and writable
        and _references(held) == BY_THE_LIST_ALONE
    )
    array = held.pop()
    return array if taken_over else array.copy()


def initial_state(program: Program, graph: BaseGraph, to_device: Callable[[Any], Any]) -> dict:
    """Ask the program for its state, check it, and bring the arrays to the device."""
    name_of = type(program).__name__
    try:
        inspect.signature(program.initial_state).bind(graph)
    except TypeError:
        raise TypeError(
            f"{name_of}.initial_state must take a graph: write `def initial_state(self, graph)`"
        ) from None
    try:
        given = program.initial_state(graph)
    except AttributeError as error:
        if graph.scheme is None or error.obj is not graph:
            if graph.lists_apart and error.obj is graph:
                raise TypeError(
                    f"{name_of}.initial_state asks for graph.{error.name}, which a rank's part of "
                    "a graph does not have: it has number_of_vertices, index_dtype, directed, "
                    "degree, and row_weights() of rows(direction), of all vertices"
                ) from error
            raise
        raise TypeError(
            f"{name_of}.initial_state asks for graph.{error.name}, which a compressed graph does "
            f"not have; write graph.to_graph().{error.name}, or pass as_graph(graph) instead of it"
        ) from error
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name_of}.initial_state must return a dict of arrays and numbers, "
            f"not {type(given).__name__}"
        )
    state, names, given = {}, list(given), dict(given)
    for name in names:
        value = given.pop(name)  # which nobody needs here any more
        _check_field(name, name_of)
        label = f"{name_of}.initial_state: {name!r}"
        if isinstance(value, bool | int | np.integer | np.bool_):
            if not -(2**63) <= int(value) < 2**63:
                raise ValueError(f"{label} is {shown(value)}, which is no 64-bit integer")
            state[name] = np.int64(value)
        elif isinstance(value, float | np.floating):
            state[name] = np.float64(value)
        elif hasattr(value, "shape") and len(value.shape) >= 1:
            shape = tuple(value.shape)
            with errors_named(label):
                held = [to_device(_numbers(value, label))]
                del value
                state[name] = held.pop() if program._gives_state else _owned(held)
            # Labels have a check of their own.
            if shape[0] != graph.number_of_vertices and name != "labels":
                raise ValueError(
                    f"{name_of}.initial_state gives {name!r} of shape {shape}; the "
                    f"first axis must be the {graph.number_of_vertices} vertices. A table of "
                    "another size can be an array of your module"
                )
        elif hasattr(value, "shape") and not isinstance(value, np.generic):
            raise TypeError(
                f"{name_of}.initial_state gives {name!r} as an array without dimensions; use a "
                f"number, as {name!r}: array.item()"
            )
        else:
            raise TypeError(
                f"{name_of}.initial_state gives {name!r} as {type(value).__name__}; "
                "use a number, or an array whose first axis is the vertices"
            )
    columns = program.result_columns
    if not isinstance(columns, tuple | list) or any(not isinstance(name, str) for name in columns):
        mend = f"; write ({columns!r},)" if isinstance(columns, str) else ""
        raise TypeError(
            f"{name_of}.result_columns must be a tuple of names, not {shown(columns)}{mend}"
        )
    taken = [*graph.vertices.names(), "partition"]
    for name in program.result_columns:
        if name in taken:
            raise ValueError(
                f"{name_of}.result_columns names {name!r}, which the result holds already"
            )
        taken.append(name)
        array = state.get(name)
        if array is None or getattr(array, "shape", None) != (graph.number_of_vertices,):
            raise ValueError(
                f"{name_of}.result_columns names {name!r}, which is not an array with one value "
                "a vertex in initial_state"
            )
    return state
