"""What moves vertices, refines communities and contracts a level: an engine a device."""

from __future__ import annotations

from typing import Any, Protocol

from glp_rapids.communities.numbers import Numbered, PendingLevels, Terms
from glp_rapids.communities.objective import Network

Array = Any


class Engine(Protocol):
    """One level of a run: a network, and C of the objective; labels are the names of communities.

    A community bears the name of the vertex it began with.
    """

    network: Network
    constant: int
    volumes: Array  # of communities by name, as `up` left them

    def __init__(self, network: Network, constant: int) -> None: ...

    def rest(
        self, labels: Array, seed: int, depth: int, max_level: int, refining: bool
    ) -> PendingLevels | None:
        """Do this level and all above it, if it is small enough; None: do one at a time.

        ``seed``: of this level on the way up; ``depth``: how many are below it.
        """

    def up(
        self, labels: Array, seed: int, classes: int, least_moves: int | None
    ) -> tuple[Array, list[int], Numbered, tuple[Engine, Array] | None]:
        """Sweep until few vertices move, number communities, and contract them.

        ``classes``: of vertices, which take turns. Return labels, how many moved in each sweep,
        numbers, and of the level above the engine and the labels: None where this is the last
        (`schedule.ends_at`), or fewer moved than ``least_moves``, which is None if any are too few.
        """

    def refined(
        self, labels: Array, seed: int, sweeps: int, communities: Numbered | None = None
    ) -> tuple[Numbered, tuple[Engine, Array] | None]:
        """Split each community into well-connected parts, number these, and contract them.

        ``communities``: numbers of those, if known. Return the numbers of parts, and of the level
        above the engine and the labels: None where this is the last.
        """

    def down(
        self, labels: Array, parts: Numbered | None, seed: int, classes: int, *,
        terms: bool = False, last: bool = False,
    ) -> tuple[Array, list[int], Terms | None]:  # fmt: skip
        """Sweep again, with the communities of the level above, whose vertices are the parts.

        Without parts with those of this level; return what an objective is made of if asked to.
        ``last``: connected parts of what comes out will be asked for.
        """

    def terms(self, labels: Array, volumes: Array | None) -> Terms:
        """Return what an objective is made of; ``volumes``, of communities by name, if known."""

    def connected_parts(self, labels: Array) -> tuple[Array, Terms]:
        """Name what is connected inside of communities; return what an objective is made of."""


def _cpu() -> type[Engine]:
    from glp_rapids.communities.engines.cpu import CpuEngine

    return CpuEngine


def _gpu() -> type[Engine]:
    from glp_rapids.communities.engines.gpu import GpuEngine

    return GpuEngine


# By device; nothing is imported before it is asked for.
ENGINES = {"cpu": _cpu, "gpu": _gpu}


def engine_of(device: str) -> type[Engine]:
    """Return the class of the engine of a device."""
    return ENGINES[device]()
