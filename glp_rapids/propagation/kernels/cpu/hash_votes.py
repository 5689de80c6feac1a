"""The sweep on CPU cores: a table of labels a thread, a list searched before it is hashed.

All threads take chunks of 256 vertices in turn, rows of any degree. A thread's tables take 16 bytes
an entry of the largest row, and 4 bytes a slot: two for each entry, or one for each vertex of a
graph of up to a million.

A vertex counts the votes of its neighbours' labels in a compact list of (label, votes). Most
vertices see a handful of labels, so the list is searched as it stands; a vertex that sees more
than ``LISTED`` indexes it by a table of slots, addressed by the label itself where the graph is
small enough, by a hash of it elsewhere. Where scores only grow (plain sums of non-negative votes)
the best label is known at every moment and nothing is scanned at the end.

A class is evaluated by all threads before any of it is updated: two parallel regions a class, in
one compiled function a sweep, since a call from Python costs as much as thousands of edges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cache import keep_on_disk
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together
from glp_rapids.jit.target import DigestCache
from glp_rapids.propagation import slack as slack_rule
from glp_rapids.propagation.compile_program import Compiled, built_once
from glp_rapids.propagation.failures import AMOUNT, HEARD, LOWEST, SAID, WORDS, failure
from glp_rapids.propagation.kernels.cpu import unit_votes
from glp_rapids.propagation.kernels.cpu.atomics import take_one

slack_of = compiled_for_cpu(error_model="numpy")(slack_rule.slack_of)
_failure = compiled_for_cpu(error_model="numpy")(failure)

EVERYTHING = (True, True, True)  # the phases of a class: evaluate, update, count volumes
ONE_AFTER_ANOTHER = (True, False, False), (False, True, False), (False, False, True)
LISTED = 8  # labels searched one by one before the table of slots is used
# Entries. An empty parallel region took 2 microseconds on two idle cores, but milliseconds where
# another process held one of them; a class has two, and a small graph is done before that.
PARALLEL_FROM = 1 << 16
CHANGED = WORDS  # beside what went wrong a thread has a word for how many labels it changed
CHUNK = 256  # vertices a thread takes at a time: enough to amortise, few enough to balance


class SweepRule(NamedTuple):
    """What holds for one sweep."""

    ties: Any  # what `ties.preferred` takes after the labels: retain, tie_break, seed, id words
    scale: Any  # of fixed point
    limit: Any  # the largest amount
    largest_vote: Any  # of one neighbour, as a vote


@compiled_for_cpu(error_model="numpy")
def _fail(errors, v, kind):
    """Note what went wrong at a vertex; of all the smallest stays."""
    errors[0] = 1
    errors[1] = min(errors[1], _failure(v, kind))


def _say(compiled: Compiled) -> Callable:
    """Compile what lets a vertex say its label."""
    pick_label, checked = compiled.pick_label, compiled.traits.checks_said

    @compiled_for_cpu(error_model="numpy")
    def say(v, state, errors):
        label = pick_label(v, state.sweep, state)
        if checked and (label < LOWEST or label >= state.labels.size):
            _fail(errors, v, SAID)
            state.labels[v] = -1
        else:
            state.labels[v] = label

    return say


def chunks_of(compiled: Compiled, stamped: bool) -> tuple[Callable, Callable, Callable]:
    """Make what evaluates a chunk of vertices, updates it, and finds a thread's own tables.

    They are compiled for the kernels that call them.
    ``stamped``: votes all count one and the table of stamps fits (see `unit_votes`).
    """
    traits = compiled.traits
    unit, growing, plain = traits.unit_votes, traits.growing_scores, traits.plain
    default_score, weighted = traits.default_score, traits.weighted
    checked, checks_heard = traits.checks_amounts, traits.checks_heard
    score_type = np.float64 if traits.real_scores else np.int64
    load_neighbor, label_score = compiled.load_neighbor, compiled.label_score
    update_vertex, say = compiled.update_vertex, _say(compiled)
    to_fixed, from_fixed = compiled.to_fixed, compiled.from_fixed
    preferred, bears = compiled.preferred, traits.bears_changes
    jit = compiled_for_cpu(error_model="numpy")

    inlined = compiled_for_cpu(error_model="numpy", forceinline=True)

    @inlined
    def slot_of(label, mask, direct):
        """Return a label's first slot: itself if the table has one for every label."""
        if direct:
            return np.int64(label)
        return np.int64((np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask

    @inlined
    def evaluate(v, start, end, indices, weights, state, rule, scratch, errors):
        """Return (winner, score, tied); the winner is negative where nobody votes."""
        scale, limit, ties = rule.scale, rule.limit, rule.ties
        # Unsigned indices spare a test of each for being negative.
        entry_label, entry_votes, entry_slot, slots, direct = scratch
        mask = slots.size - 1
        current = state.labels[np.uint64(v)]
        best = np.int64(-1)
        best_score = score_type(0)
        tied = False
        distinct = 0
        hashed = False
        for j in range(start, end):
            u = indices[np.uint64(j)]
            if unit:
                label = np.int64(state.labels[np.uint64(u)])
                votes = np.int64(1)
            else:
                weight = np.int64(1)
                if weighted:
                    weight = weights[np.uint64(j)]
                heard, amount = load_neighbor(v, u, weight, state)
                label = np.int64(heard)
                if checked and not abs(np.float64(amount)) <= limit:
                    _fail(errors, v, AMOUNT)
                    continue
                if checks_heard and heard >= state.labels.size:
                    _fail(errors, v, HEARD)
                    continue
                votes = to_fixed(amount, scale)
            if label < 0:
                continue
            entry = 0
            if not hashed:
                while entry < distinct and entry_label[np.uint64(entry)] != label:
                    entry += 1
                if entry == distinct:
                    if distinct < LISTED:
                        entry_label[np.uint64(entry)] = label
                        entry_votes[np.uint64(entry)] = 0
                        distinct += 1
                    else:
                        hashed = True
                        for other in range(distinct):
                            slot = slot_of(entry_label[np.uint64(other)], mask, direct)
                            while slots[np.uint64(slot)] != 0:
                                slot = (slot + 1) & mask
                            slots[np.uint64(slot)] = other + 1
                            entry_slot[np.uint64(other)] = slot
            if hashed:
                slot = slot_of(label, mask, direct)
                entry = np.int64(slots[np.uint64(slot)]) - 1
                while entry >= 0 and entry_label[np.uint64(entry)] != label:
                    slot = (slot + 1) & mask
                    entry = np.int64(slots[np.uint64(slot)]) - 1
                if entry < 0:
                    entry = distinct
                    entry_label[np.uint64(entry)] = label
                    entry_votes[np.uint64(entry)] = 0
                    entry_slot[np.uint64(entry)] = slot
                    slots[np.uint64(slot)] = entry + 1
                    distinct += 1
            total = entry_votes[np.uint64(entry)] + votes
            entry_votes[np.uint64(entry)] = total
            if growing:
                if best < 0 or total > best_score:
                    best = label
                    best_score = score_type(total)
                    tied = False
                elif total == best_score and label != best:
                    tied = True
                    if preferred(label, best, current, *ties):
                        best = label
        if hashed:
            for entry in range(distinct):
                slots[np.uint64(entry_slot[np.uint64(entry)])] = 0
        if not growing:
            for entry in range(distinct):
                label = np.int64(entry_label[np.uint64(entry)])
                if default_score:
                    score = score_type(entry_votes[np.uint64(entry)])
                else:
                    freq = from_fixed(entry_votes[np.uint64(entry)], scale)
                    score = score_type(label_score(v, entry_label[np.uint64(entry)], freq, state))
                if score != score:
                    continue
                if best < 0 or score > best_score:
                    best = label
                    best_score = score
                    tied = False
                elif score == best_score:
                    tied = True
                    if preferred(label, best, current, *ties):
                        best = label
        return best, best_score, tied

    @jit
    def evaluate_slots(
        low, high, vertices, indptr, indices, weights, state, flags, rule, scratch,
        slack, tied, winners, errors,
    ):  # fmt: skip
        """Evaluate the active vertices of ``vertices[low:high]``; list those to update from low.

        ``indptr``, ``indices`` and ``weights`` are in the order of ``vertices``.
        """
        skip, revisit_tied = flags
        winner_vertex, winner_label, winner_score = winners
        listed = low
        for position in range(low, high):
            v = vertices[np.uint64(position)]
            place = np.uint64(v)
            if skip and slack[place] >= 0 and not (revisit_tied and tied[place] != 0):
                continue
            label, score, was_tied = evaluate(
                v, indptr[np.uint64(position)], indptr[np.uint64(position + 1)], indices, weights,
                state, rule, scratch, errors,
            )  # fmt: skip
            tied[place] = was_tied
            if skip:
                degree = indptr[np.uint64(position + 1)] - indptr[np.uint64(position)]
                left = np.int32(0)
                if bears:
                    left = slack_of(np.int64(score), degree, rule.largest_vote)
                slack[place] = left
            if label < 0 or (plain and label == state.labels[place]):
                continue
            winner_vertex[np.uint64(listed)] = v
            winner_label[np.uint64(listed)] = label
            winner_score[np.uint64(listed)] = score
            listed += 1
        return listed - low

    evaluate_chunk = unit_votes.build(compiled, CHUNK) if stamped else evaluate_slots

    @jit
    def scratch_of(tables, thread):
        """Return a thread's own part of the tables."""
        if stamped:
            table, stamps, buffer, ends, gathered = tables
            return table[thread], stamps[thread], buffer[thread], ends[thread], gathered[thread]
        entry_label, entry_votes, entry_slot, slots, direct = tables
        return entry_label[thread], entry_votes[thread], entry_slot[thread], slots[thread], direct

    @jit
    def update_chunk(
        low, high, readers_indptr, readers, state, scale, skip, slack, winners, old, errors
    ):
        """Update the listed vertices, and activate the readers of those that changed."""
        winner_vertex, winner_label, winner_score = winners
        changed = 0
        for position in range(low, high):
            v = winner_vertex[position]
            before = state.labels[v]
            if plain:
                state.labels[v] = winner_label[position]
            else:
                if default_score:
                    update_vertex(
                        v, winner_label[position], from_fixed(winner_score[position], scale), state
                    )
                else:
                    update_vertex(v, winner_label[position], winner_score[position], state)
                say(v, state, errors)
            old[position] = before
            if state.labels[v] != before:
                changed += 1
                if skip:
                    for j in range(readers_indptr[v], readers_indptr[v + 1]):
                        reader = np.uint64(readers[np.uint64(j)])
                        if slack[reader] >= 0:  # else it is active, which no change can undo
                            take_one(slack, reader)
        return changed

    return evaluate_chunk, update_chunk, scratch_of


@built_once
def sweep_kernel(compiled: Compiled, stamped: bool) -> Callable:
    """Compile the sweep for one program; the result is cached in memory and on disk.

    A class that is not in memory as a whole is swept piece by piece, in ``phases``: all pieces
    are evaluated before any is updated, and all updated before volumes count.
    """
    counted = compiled.traits.count_volumes
    volume_field = compiled.state_type._fields.index("volume") if counted else 0
    State = compiled.state_type
    evaluate_chunk, update_chunk, scratch_of = chunks_of(compiled, stamped)
    jit = compiled_for_cpu(error_model="numpy")

    @jit
    def evaluate_some(
        thread, threads, first, last, vertices, indptr, indices, weights, fields, flags, rule,
        tables, slack, tied, winners, counts, errors,
    ):  # fmt: skip
        """Evaluate the chunks of one thread, of ``vertices[first:last]``."""
        state = State(*fields)
        scratch = scratch_of(tables, thread)
        chunks = (last - first + CHUNK - 1) // CHUNK
        for chunk in range(thread, chunks, threads):
            low = first + chunk * CHUNK
            counts[chunk] = evaluate_chunk(
                low, min(low + CHUNK, last), vertices, indptr, indices, weights, state, flags,
                rule, scratch, slack, tied, winners, errors[thread],
            )  # fmt: skip

    @jit
    def update_some(
        thread, threads, first, last, readers_indptr, readers, fields, scale, skip, slack,
        winners, old, counts, errors,
    ):  # fmt: skip
        """Update what the thread's chunks list; add up the changes."""
        state = State(*fields)
        chunks = (last - first + CHUNK - 1) // CHUNK
        for chunk in range(thread, chunks, threads):
            if counts[chunk] > 0:
                low = first + chunk * CHUNK
                errors[thread, CHANGED] += update_chunk(
                    low, low + counts[chunk], readers_indptr, readers, state, scale, skip,
                    slack, winners, old, errors[thread],
                )  # fmt: skip

    def sweep(
        team, phases, class_indptr, vertices, indptr, indices, weights, readers_indptr, readers,
        fields, flags, rule, tables, slack, tied, winners, old, counts, errors,
    ):  # fmt: skip
        skip, _ = flags
        threads = team.threads
        evaluates, updates, recounts = phases
        for thread in range(threads):
            errors[thread, CHANGED] = 0
        for group in range(class_indptr.size - 1):
            first, last = class_indptr[group], class_indptr[group + 1]
            if evaluates:
                together(team, evaluate_some, (
                    threads, first, last, vertices, indptr, indices, weights, fields, flags, rule,
                    tables, slack, tied, winners, counts, errors,
                ))  # fmt: skip
            if updates:
                together(team, update_some, (
                    threads, first, last, readers_indptr, readers, fields, rule.scale, skip,
                    slack, winners, old, counts, errors,
                ))  # fmt: skip
            if counted and recounts:
                labels = fields[0]
                volume = fields[volume_field]
                for chunk in range((last - first + CHUNK - 1) // CHUNK):
                    low = first + chunk * CHUNK
                    for position in range(low, low + counts[chunk]):
                        if old[position] >= 0:
                            volume[old[position]] -= 1
                        now = labels[winners[0][position]]
                        if now >= 0:
                            volume[now] += 1
        changed = 0
        for thread in range(threads):
            changed += errors[thread, CHANGED]
        return changed

    return ParallelKernel(sweep, partial(DigestCache.of, beside=compiled))


_started: dict[str, Callable] = {}


def threads_for(number_of_edges: int) -> int:
    """Return how many threads are worth waking: one where a class costs less than they do."""
    return threads_available() if number_of_edges >= PARALLEL_FROM else 1


def start_kernel(compiled: Compiled) -> Callable:
    """Return the function that lets every vertex say its first label, built once a process."""
    if compiled.digest not in _started:
        _started[compiled.digest] = _build_start(compiled)
    return _started[compiled.digest]


def _build_start(compiled: Compiled) -> Callable:
    State, say = compiled.state_type, _say(compiled)

    def start(fields, errors):
        state = State(*fields)
        for v in range(state.labels.size):
            say(v, state, errors)

    kernel = compiled_for_cpu(error_model="numpy")(start)
    return keep_on_disk(kernel, DigestCache.of, start, compiled)
