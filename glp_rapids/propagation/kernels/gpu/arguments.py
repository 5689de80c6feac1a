"""What the persistent kernel is given: arrays of the graph, of its plan and of the run.

Its engines make these once a run, and all paths of the kernel take them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Rows(NamedTuple):
    """A CSR: the rows to evaluate, or the readers of every vertex."""

    indptr: Any
    indices: Any
    weights: Any


class PlanArrays(NamedTuple):
    """Who is evaluated in which order, see `plan`."""

    vertices: Any
    starts: (
        Any  # of their rows, or of what is decoded of them in the buffer, or the bit of the list
    )
    degrees: Any
    groups: Any  # one row a group, the columns of `plan`
    levels: Any  # how a sweep goes through the groups, see `plan`


class Hubs(NamedTuple):
    """Rows that several blocks share; int64."""

    of_piece: Any  # [pieces, 6]: all about the hub of a piece, the columns of `hub_pieces`
    batch_pieces: Any  # the first piece of each batch of hubs whose tables lie side by side


class HubTables(NamedTuple):
    """Hash tables in global memory of the hubs of one batch; clean before and after."""

    labels: Any  # -1: a free slot
    votes: Any  # what pieces handed over
    excess: Any  # the same less the upper bounds of these pieces, for labels that others held back
    taken: Any  # int32: the slots in use, from each hub's base on
    number: Any  # int32: how many these are, hub by hub


class Pieces(NamedTuple):
    """What the blocks hand over piece by piece."""

    label: Any  # the best candidate of a piece
    score: Any  # its score; or, with upper bounds, the most of the self votes that are left out
    tied: Any
    upper_bound: Any  # of the votes of every label that is not handed over
    arrived: Any  # int32: pieces of each hub that are handed over


class Run(NamedTuple):
    """The arrays of a run."""

    slack: Any  # int32 by vertex: how many neighbours may still change before it is evaluated
    tied: Any  # uint8 by position in the plan's list
    winner: Any  # by position: the label to be written, -1: none
    winner_score: Any
    changed: Any  # int64: labels that changed, sweep by sweep
    drawn: Any  # int64 [4]: counters of rows of blocks and tickets of warps, for two groups in turn
    barrier: Any  # int64 [1]: arrivals at the grid barrier
    clock: Any  # int64 [steps, blocks, 6]: nanoseconds, where `shared_memory.CLOCKED` asks for them
    long_lists: Any  # int64: how many lists of readers all blocks share, then both ends of each
    control: Any  # int64 [3]: `SWEEP`'s sweeps, explored, everybody, from launch to launch


class LaunchSchedule(NamedTuple):
    """What one launch has to do, by which rules."""

    classes: Any
    vertices: Any  # in all; negative if classes never merge
    before: Any  # labels that changed before the first sweep of the run; negative: nobody knows
    strips: Any  # groups of a class
    sweeps: Any  # to do
    forgotten: Any  # sweeps done whose changes ``changed`` has no more
    explore: Any  # the rules of `propagation.schedule`
    stops: Any
    few: Any
    patience: Any
    retain: Any
    tie_break: Any
    seed: Any
    skip: Any  # evaluate only the active
    all_distinct: Any  # labels are, before the first sweep
    rows_ascend: Any  # strictly
    many: Any  # more changes make everybody active
    sparse: Any  # after so few changes tickets are those of few active vertices
    buffer: Any  # entries of each half
    long_list: Any  # all blocks share the lists of more readers than that; 0: there are none
    early: Any  # decode a group while the one before is evaluated, whoever is active
    marks: Any  # those whom a change concerns are told in any sweep, in the first one, too


class Numbers(NamedTuple):
    """How amounts become votes, and where failures are noted."""

    scale: Any  # of fixed point
    limit: Any  # the largest amount
    largest_vote: Any  # of one neighbour, as a vote
    errors: Any  # see `failures`
    first_id: Any  # see `graph.id_words`
    id_words: Any


class CompressedLists(NamedTuple):
    """Compressed neighbour lists."""

    words: Any  # uint32: the bits
    tables: Any  # of codes
    offsets: Any  # the bit at which each list begins
    settings: Any
    position: Any  # of each part of a long list, group by group: its list in the plan
    part: Any  # and its number there
    group_parts: Any  # the first part of each group
    place: Any  # of each vertex: its list, if lists are in an order of their own
    order: Any  # of each list: its vertex
    first_weight: Any  # of each list
    weights: Any  # or codes of them
    values: Any  # what the codes stand for


@dataclass(frozen=True)
class Decoding:
    """How compressed lists are decoded: what the kernel is compiled for."""

    scheme: str
    ordered: bool  # lists are in another order than the vertices
    weighted: bool
    coded: bool  # weights are codes
    equal: bool  # one weight is that of all entries
    fused: bool  # rows of up to 32 entries are decoded into the table of the warp that counts them
    bufferless: bool  # so are all others, part by part, into registers
    types: tuple[str | None, ...]  # of ``order`` and of codes: a digest has one signature
