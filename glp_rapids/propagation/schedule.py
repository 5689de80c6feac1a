"""The schedule of a run: which rule the next sweep follows, and when exploring and settling end.

Every rule is a plain scalar function, written once: the host calls it between sweeps, and it is
compiled for kernels that take the decisions where the labels are, without asking the host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix_array
from glp_rapids.common.segments import occurrences
from glp_rapids.device import array_module, to_host
from glp_rapids.propagation.ties import TIE_BREAKS, TIE_HASH

if TYPE_CHECKING:
    from glp_rapids.graph.id_words import IdWords
    from glp_rapids.propagation.options import Options

# Once a sweep changes at most one label in so many, the next has at most so many classes; sooner
# when it settles, since communities hardly merge then. Chosen by a table over all shared graphs
# (README): fewer steps, and modularity within .002.
FEWER, FEWER_SETTLING, FEWER_CLASSES = 8, 4, 8
FEWEST, FEWEST_SETTLING, FEWEST_CLASSES = 32, 8, 4
# In the first sweep every vertex sees its neighbours' own names, and the first classes name their
# surroundings; with many classes one label so gets ahead of all others where there are few
# vertices. So up to so many, the first exploring sweep has `FEWEST_CLASSES` (table in README).
FLOODED_SOON = 1 << 13
PATIENCE = 3  # settling sweeps without a new low of changes: the rest swaps labels for ever
EXPLORING = -1  # in the place of the number of sweeps that explored: they still do
UNKNOWN = -1  # in the place of how many labels changed before: nobody knows


def ties_of(sweep, explored, retain, tie_break, seed):
    """Return how a sweep settles ties: retain, tie_break, seed of the order, revisit the tied.

    Exploring, the order is a new one each sweep. Settling without retention, it is another one
    from the first settling sweep on, so vertices that were tied are evaluated again then.
    """
    if explored < 0:
        return False, TIE_HASH, seed + (sweep << 32), True
    return retain, tie_break, seed, sweep == explored + 1 and not retain


def activates_all(sweep, changed_before, many):
    """Tell whether all vertices become active: at first, and where marking each costs more."""
    return sweep == 1 or changed_before > many


def span_of(classes, sweep, changed_before, number_of_vertices, exploring):
    """Return how many neighbouring classes a sweep updates as one, a power of two.

    ``changed_before``: labels, in the sweep before, or `UNKNOWN`.
    """
    fewer, fewest, most = FEWER_SETTLING, FEWEST_SETTLING, classes
    if exploring:
        fewer, fewest = FEWER, FEWEST
    if changed_before >= 0 and fewer * changed_before <= number_of_vertices:
        most = FEWER_CLASSES
    if changed_before >= 0 and fewest * changed_before <= number_of_vertices:
        most = FEWEST_CLASSES
    if sweep == 1 and exploring and 0 <= number_of_vertices <= FLOODED_SOON:
        most = FEWEST_CLASSES
    span = 1
    while span * most < classes:
        span *= 2
    return span


def spans_of(classes: int) -> list[int]:
    """List what `span_of` may return, ascending; each divides the next."""
    return sorted({span_of(classes, 2, changed, FEWEST, True) for changed in (FEWEST, 2, 1)})


def floods(changed, sweeps):
    """Tell whether changes get fewer by less than one in 25: one label may flood the graph.

    `glp-rapids bench quality` shows that this comes before a collapse into one community.
    """
    return sweeps > 1 and 25 * changed[sweeps - 1] > 24 * changed[sweeps - 2]


def settles(changed, explored, sweeps, few, patience):
    """Tell whether settling is over: few changes, or no fewer than before (patience 0: never)."""
    if changed[sweeps - 1] <= few:
        return True
    if patience == 0 or sweeps - explored <= patience:
        return False
    before = changed[explored]
    for sweep in range(explored + 1, sweeps - patience):
        before = min(before, changed[sweep])
    since = changed[sweeps - 1]
    for sweep in range(sweeps - patience, sweeps):
        since = min(since, changed[sweep])
    return since >= before


def judged(changed, forgotten, sweeps, explored, explore, stops, few, patience):
    """Return, after a sweep, how many sweeps explored (-1: they still do), and whether it settled.

    ``changed`` begins with the sweep after the first ``forgotten`` ones.
    """
    if explored < 0:
        last = sweeps - forgotten
        if sweeps == explore or (stops and (changed[last - 1] <= few or floods(changed, last))):
            return sweeps, False
        return explored, False
    return explored, settles(
        changed, max(explored - forgotten, 0), sweeps - forgotten, few, patience
    )


@dataclass(frozen=True)
class Rule:
    """What one sweep needs to know besides the graph and the state."""

    sweep: int
    retain: bool
    tie_break: int
    tie_seed: int
    revisit_tied: bool
    activates_all: bool
    span: int = 1  # neighbouring classes that are updated as one


@dataclass
class Schedule:
    """How far a run has come, and which rule its next sweep follows."""

    options: Options
    number_of_vertices: int
    before: int = UNKNOWN  # labels that changed before the first sweep
    changed: list[int] = field(default_factory=list)
    explored: int = EXPLORING  # how many sweeps explored
    settled: bool = False

    def __post_init__(self) -> None:
        if self.options.explore == 0:
            self.explored = 0
        self.settled = self.number_of_vertices == 0

    @property
    def exploring(self) -> bool:
        """Whether the next sweep explores."""
        return self.explored < 0

    @property
    def few(self) -> int:
        """A settling sweep with at most so many changes ends the run."""
        return int(self.options.tol * self.number_of_vertices)

    @property
    def counted(self) -> int:
        """Of so many vertices few may change for classes to merge; negative: they never do."""
        return self.number_of_vertices if self.options.merges else -1

    @property
    def patience(self) -> int:
        """So many settling sweeps without a new low of changes end the run; 0: none do."""
        return PATIENCE if self.options.tol > 0 else 0

    @property
    def over(self) -> bool:
        """Whether no sweep is left to do."""
        return len(self.changed) >= self.options.max_iter or (
            self.settled and (self.options.stops or self.number_of_vertices == 0)
        )

    def rule(self) -> Rule:
        """Return the rule of the next sweep."""
        sweep, options = len(self.changed) + 1, self.options
        tie_break, seed = TIE_BREAKS[options.tie_break], int(options.seed)
        ties = ties_of(sweep, self.explored, bool(options.retain), tie_break, seed)
        # led by the host, to mark single vertices active is cheap enough after the first sweep
        before, many = self.changed[-1] if self.changed else self.before, self.number_of_vertices
        classes = options.classes if options.update == "semi" else 1
        span = span_of(classes, sweep, before, self.counted, self.exploring)
        return Rule(sweep, *ties, activates_all(sweep, before, many), span)

    def record(self, changed: int) -> None:
        """Note how many labels a sweep changed; decide whether exploring or the run is over."""
        self.changed.append(changed)
        options = self.options
        self.explored, self.settled = judged(
            self.changed, 0, len(self.changed), self.explored, options.explore, options.stops,
            self.few, self.patience,
        )  # fmt: skip


def class_numbers(words: Any, classes: int) -> Any:
    """Return the class of every vertex, 0 to ``classes`` - 1, by a hash of its word."""
    return mix_array(words, CLASS_SEED) % np.uint64(classes)


def class_lists(id_words: IdWords, number_of_vertices: int, classes: int) -> tuple[Any, Any]:
    """List the vertices class after class, ascending in each; return offsets and the list."""
    xp = array_module(id_words.words)
    vertices = xp.arange(number_of_vertices, dtype=np.int64)
    if classes == 1:
        return np.array([0, number_of_vertices], dtype=np.int64), vertices
    group = class_numbers(id_words.of(vertices), classes)
    group = group.astype(np.uint8 if classes <= 256 else np.uint16 if classes < 65536 else np.int32)
    vertices = xp.argsort(group, kind="stable").astype(np.int64)
    counts = to_host(occurrences(group, classes))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), vertices


def merged(class_indptr: np.ndarray, span: int) -> np.ndarray:
    """Return the offsets of classes of which ``span`` neighbours are one."""
    return np.append(class_indptr[:-1:span], class_indptr[-1])
