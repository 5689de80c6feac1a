"""The streamed and the persistent kernel in a few lines of NumPy, to run engines without a GPU.

It evaluates plain votes where the kernel would read them: rows that have come lie in the buffer,
and those that were said to be elsewhere are left out. It takes the decisions of a sweep by the
rules of `propagation.schedule`, as the kernel does.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
import reference

from glp_rapids.propagation.engines import strips
from glp_rapids.propagation.kernels.gpu.plan import (
    END_ROW,
    ENDS,
    FIRST_ROW,
    HUBS,
    RANGES,
    ROWS_A_CLASS,
    SPAN,
)
from glp_rapids.propagation.kernels.gpu.streamed import OF_OTHERS
from glp_rapids.propagation.schedule import activates_all, judged, span_of, ties_of
from glp_rapids.propagation.slack import slack_of
from glp_rapids.propagation.ties import TIE_BREAKS

LAST_END = ENDS + RANGES - 1
NAMES = {number: name for name, number in TIE_BREAKS.items()}


def unpacked(entries, first, last):
    """Read bit-packed entries one by one; those of an array as they are."""
    if isinstance(entries, np.ndarray):
        return entries[first:last]
    words, bits = entries.words, int(entries.bits)
    width = 8 * words.itemsize
    found = []
    for i in range(int(first), int(last)):
        place, offset = divmod(i * bits, width)
        both = int(words[place]) | int(words[place + 1]) << width
        found.append(both >> offset & (1 << bits) - 1)
    return np.array(found, np.int64)


class StreamedModel:
    """Stands for the streamed kernel and the small ones around it; ``words``: of the vertices.

    ``launched``: the steps, as they came; ``left_out``: how often somebody was not active.
    """

    def __init__(self, words):
        self.words, self.launched, self.left_out = words, [], 0

    def launch(self, kernel, blocks, threads, *arguments):
        """Do what the kernels between two steps do."""
        getattr(self, "_" + kernel.py_func.__name__)(*arguments)

    def prepared_together(self, kernel, wanted, threads, arguments, last):
        """Return what does a step."""
        return partial(getattr(self, "_" + kernel.py_func.__name__), *arguments)

    def _census(self, groups, vertices, degrees, slack, tied, costs, revisit_tied, a_read):
        costs[:] = 1 << 40  # all is copied

    def _take_rows(self, vertices, first, last, width, values, taken):
        taken.reshape(-1, width)[:] = values.reshape(-1, width)[vertices[first:last]]

    def _put_rows(self, vertices, first, last, given, values):
        values[vertices[first:last]] = given

    def _pack_outcome(self, vertices, bounds, found, message, rank, told):
        for there, kind, where in self._parts_of(vertices, bounds[rank], message, told):
            there[:] = getattr(found, kind)[where]

    def _unpack_outcome(self, vertices, bounds, found, message, rank, told):
        for there, kind, where in self._parts_of(vertices, bounds[rank], message, told):
            getattr(found, kind)[where] = there

    def _parts_of(self, vertices, bounds, message, told):
        """Yield the parts of a message, of what they tell, and of whom."""
        of_part, at = bounds[int(told.first) : int(told.end)], 0
        positions = np.concatenate([np.arange(*ends) for ends in of_part])
        kinds = [("score", positions)] * bool(told.scores) + [("winner", positions)]
        kinds += [("slack", vertices[positions])] * bool(told.slack) + [("tied", positions)]
        for kind, where in kinds:
            there = getattr(message, kind)
            assert at % there.itemsize == 0
            there = there[at // there.itemsize :][: positions.size]
            yield there, kind, where
            at += 8 * there.size if kind == "score" else there.nbytes

    def _propagate_strips(self, plan, tables, hubs, pieces, run, rows, readers, lists, fields,
                          schedule, numbers, step):  # fmt: skip
        self.launched.append(step)
        labels = fields[0]
        for _ in range(int(schedule.sweeps)):
            rule = self._rule(plan, run, schedule)
            first, end = int(rule.level[FIRST_ROW]), int(rule.level[END_ROW])
            a_class = int(rule.level[ROWS_A_CLASS])
            if step.first >= 0:
                first, end = int(step.first), int(step.end)
            for strip in range(first, end):
                of_strip = slice(plan.groups[strip, HUBS], plan.groups[strip, LAST_END])
                some = max(of_strip.start, int(step.since)), min(of_strip.stop, int(step.until))
                for position in range(*some) if lists.place[strip] != OF_OTHERS else ():
                    if self._wanted(position, plan, run, rule):
                        heard = labels[self._entries(strip, position, plan, rows, lists, step)]
                        self._evaluate(position, plan, heard, labels, run, schedule, rule, numbers)
                whole = (strip + 1) % a_class == 0 or strip + 1 == int(rule.level[END_ROW])
                if whole and strip < step.updated:
                    begin = plan.groups[strip - strip % a_class, HUBS]
                    of_class = np.arange(begin, of_strip.stop)
                    self._update(of_class, plan, run, labels, lists.entries, schedule, rule)
            if not step.last or self._is_over(run, schedule, rule):
                return

    def _rule(self, plan, run, schedule):
        """What holds for the next sweep."""
        sweep, explored = int(run.control[0]) + 1, int(run.control[1])
        ties = ties_of(
            sweep, explored, bool(schedule.retain), int(schedule.tie_break), int(schedule.seed)
        )
        before = int(schedule.before)
        if sweep > 1:
            before = int(run.changed[sweep - 2 - schedule.forgotten])
        wakes_all = activates_all(sweep, before, int(schedule.many))
        activates = schedule.skip and (schedule.marks or not wakes_all)
        span = span_of(int(schedule.classes), sweep, before, int(schedule.vertices), explored < 0)
        (level,) = plan.levels[plan.levels[:, SPAN] == span]
        return SimpleNamespace(
            sweep=sweep, explored=explored, revisits=ties[-1], activates=activates, level=level,
            everybody=bool(run.control[2]) or not activates,
        )  # fmt: skip

    def _is_over(self, run, schedule, rule):
        """Take a sweep down; tell whether the run is over."""
        run.control[0] += 1
        run.control[2] = not rule.activates
        run.control[1], settled = judged(
            run.changed.tolist(), int(schedule.forgotten), int(run.control[0]), rule.explored,
            int(schedule.explore), bool(schedule.stops), int(schedule.few),
            int(schedule.patience),
        )  # fmt: skip
        return settled and schedule.stops

    def _wanted(self, position, plan, run, rule):
        wanted = rule.everybody or run.slack[plan.vertices[position]] < 0
        wanted = wanted or (rule.revisits and run.tied[position])
        self.left_out += not wanted
        return wanted

    def _entries(self, strip, position, plan, rows, lists, step):
        """Read a row where it has come to."""
        start, stop = plan.starts[position], plan.starts[position] + plan.degrees[position]
        shift = int(lists.place[strip]) - int(lists.first[strip])
        if lists.place[strip] < 0:
            assert step.filled
            begin = int(lists.first[strip])
            shift = int(lists.slots[step.slot]) - begin // strips.LINE * strips.LINE
        entries = unpacked(rows.indices, start + shift, stop + shift)
        # it has come, and nobody has written there since
        assert np.array_equal(entries, unpacked(lists.entries, start, stop))
        return entries

    def _evaluate(self, position, plan, heard, labels, run, schedule, rule, numbers):
        v = plan.vertices[position]
        votes = dict(zip(*(part.tolist() for part in np.unique(heard, return_counts=True)),
                         strict=True))  # fmt: skip
        most = max(votes.values())
        run.tied[position] = list(votes.values()).count(most) > 1
        if rule.activates:
            run.slack[v] = slack_of(most, heard.size, int(numbers.largest_vote))
        winner = reference.winner(
            votes, int(labels[v]), sweep=rule.sweep, exploring=rule.explored < 0,
            tie_break=NAMES[int(schedule.tie_break)], retain=bool(schedule.retain),
            seed=int(schedule.seed), words=self.words,
        )  # fmt: skip
        if winner != labels[v]:
            run.winner[position] = winner

    def _update(self, of_class, plan, run, labels, entries, schedule, rule):
        changed = of_class[run.winner[of_class] >= 0]
        labels[plan.vertices[changed]] = run.winner[changed]
        run.winner[changed] = -1
        run.changed[int(run.control[0] - schedule.forgotten)] += changed.size
        if rule.activates:
            for position in changed:
                np.subtract.at(run.slack, self._readers(position, plan, entries), 1)

    def _readers(self, position, plan, entries):
        start = plan.starts[position]
        return unpacked(entries, start, start + plan.degrees[position])


class PackedModel(StreamedModel):
    """Reads rows in a graph's plain lists, where the kernel would decode them."""

    def __init__(self, words, graph):
        super().__init__(words)
        self._rows = graph.rows()

    def _entries(self, strip, position, plan, rows, lists, step):
        assert lists.place[strip] >= 0 or step.filled
        return self._readers(position, plan, None)

    def _readers(self, position, plan, entries):
        first, last = self._rows.indptr[plan.vertices[position] :][:2]
        return self._rows.indices[first:last]


class PersistentModel(StreamedModel):
    """Stands for the persistent kernel, of rows that are their own readers."""

    def launch_together(self, kernel, wanted, threads, plan, tables, hubs, pieces, run, rows,
                        readers, lists, fields, schedule, numbers):  # fmt: skip
        """Do the sweeps of a launch."""
        assert readers.indices is rows.indices
        labels = fields[0]
        for _ in range(int(schedule.sweeps)):
            rule = self._rule(plan, run, schedule)
            for group in plan.groups[rule.level[FIRST_ROW] : rule.level[END_ROW]]:
                ranges = zip(group[HUBS:RANGES], group[ENDS : LAST_END + 1], strict=True)
                of_class = np.concatenate([np.arange(*ends) for ends in ranges])
                for position in of_class:
                    if self._wanted(position, plan, run, rule):
                        start = plan.starts[position]
                        heard = labels[rows.indices[start : start + plan.degrees[position]]]
                        self._evaluate(position, plan, heard, labels, run, schedule, rule, numbers)
                self._update(of_class, plan, run, labels, rows.indices, schedule, rule)
            if self._is_over(run, schedule, rule):
                return


def cut_into(monkeypatch, stays, longest, by_class=False):
    """Let so many entries stay on a GPU, and strips of the rest have so many at most.

    ``by_class``: whole classes stay if there are such.
    """
    from glp_rapids.propagation.engines import strips
    from glp_rapids.propagation.engines.gpu_streamed import StreamedGpuEngine

    sizes, cut = (stays, longest), StreamedGpuEngine._cut

    def cut_anew(self, limits):
        self._layout.cuts.clear()  # of runs with other sizes, which no limit tells from these
        cut(self, limits)

    monkeypatch.setattr(StreamedGpuEngine, "_sizes_of_strips", lambda self, *_: sizes)
    monkeypatch.setattr(StreamedGpuEngine, "_cut", cut_anew)
    if by_class:
        monkeypatch.setattr(strips, "cut", partial(strips.cut, by_class=True))
