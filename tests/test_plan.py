"""The plan of the GPU engine, made on the CPU: who is evaluated where, everybody exactly once."""

import numpy as np
import pytest
from graphs import GRAPHS, edge_frames
from hypothesis import given
from hypothesis import strategies as st

import glp_rapids
from glp_rapids.graph.id_words import IdWords
from glp_rapids.propagation.schedule import class_lists, merged, spans_of

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from glp_rapids.propagation.kernels.gpu import hub_pieces
from glp_rapids.propagation.kernels.gpu import plan as plans
from glp_rapids.propagation.kernels.gpu.plan import (
    BINS,
    BLOCK_ROWS,
    COLUMNS,
    END_OF_BATCHES,
    END_ROW,
    ENDS,
    FIRST_BATCH,
    FIRST_CHUNKS,
    FIRST_ROW,
    FIRST_TICKETS,
    HUBS,
    LAST_END,
    RANGES,
    SPAN,
    SPARSE,
    THREADS,
    TICKET_SIZES,
    WARP_ROWS,
    Bin,
    Limits,
    make_plan,
)

MANY = Limits(blocks=4096, warps_per_block=8, slots=4096, handed_over=64)
FEW = Limits(blocks=2, warps_per_block=8, slots=2048, handed_over=None)
UNPRUNED = Limits(blocks=2, warps_per_block=8, slots=1024, handed_over=None, pruned=False)

TINY_SIZES = (1, 2, 2), (1, 8, 3), (2, 4, 4), (2, 4, 8), (2, 4, 2)

# The same with every limit so small that a drawn graph passes it.
TINY = {
    "WARP_BINS": tuple(Bin(5 - place, *sizes) for place, sizes in enumerate(TINY_SIZES)),
    "WARP_ENTRIES": 4,
    "SHARE_OF_WARP": 3,
    "HUB": 7,
}
TINY_BATCH = 256


def hubs_of_many_sizes():
    """Vertices 0 to 39 know 3 to 1500 of the others."""
    rng = np.random.default_rng(5)
    degrees = np.geomspace(3, 1500, 40).astype(int)
    ends = [rng.choice(np.arange(40, 2000), size, replace=False) for size in degrees]
    return np.repeat(np.arange(40), degrees), np.concatenate(ends)


def check(rows, classes, limits):
    """Check a plan from end to end; give it."""
    id_words = IdWords.range(0, "cpu")
    plan = make_plan(rows.indptr, rows.indices.size, rows.indices.dtype, classes, id_words, limits)
    assert plan.groups.shape[1] == COLUMNS
    assert plan.entries_a_group == -(-rows.indices.size // classes)
    check_lists(plan, rows, classes, id_words)
    for level in plan.levels:
        groups = plan.groups[level[FIRST_ROW] : level[END_ROW]]
        check_bins(plan, groups, rows, limits)
        for group in groups:
            check_tickets(group, 0)
            check_tickets(group, SPARSE)
            check_chunks(group)
        check_hubs(plan, groups, limits)
    return plan


def positions_of(group, first=HUBS):
    """The positions in the list of a group's ranges, one after the other."""
    ranges = zip(group[first:RANGES], group[ENDS + first : LAST_END + 1], strict=True)
    return np.concatenate([np.arange(begin, end) for begin, end in ranges])


def check_lists(plan, rows, classes, id_words):
    """At each level each class lists its vertices that have neighbours, once."""
    offsets, members = class_lists(id_words, rows.number_of_vertices, classes)
    assert plan.levels[:, SPAN].tolist() == spans_of(classes)
    assert plan.levels[0, FIRST_ROW] == 0
    assert plan.levels[-1, END_ROW] == len(plan.groups)
    for span, first, last, rows_a_class in plan.levels:
        assert rows_a_class == 1
        of_level = merged(offsets, span)
        assert last - first == of_level.size - 1
        listed = [positions_of(group) for group in plan.groups[first:last]]
        assert np.array_equal(
            np.sort(np.concatenate(listed)), np.arange(np.count_nonzero(rows.degree))
        )
        for c, positions in enumerate(listed):
            expected = np.sort(members[of_level[c] : of_level[c + 1]])
            found = np.sort(plan.vertices[positions])
            assert found.tolist() == expected[rows.degree[expected] > 0].tolist()
    assert np.array_equal(plan.starts, rows.indptr[plan.vertices])
    assert np.array_equal(plan.degrees, rows.degree[plan.vertices])


def check_chunks(group):
    """Chunks cover a group once; computed as the kernel's update does."""
    covered = []
    for chunk in range(group[FIRST_CHUNKS + RANGES]):
        of = 0
        while chunk >= group[FIRST_CHUNKS + of + 1]:
            of += 1
        begin, end = group[of], group[ENDS + of]
        together = group[plans.UPDATED_TOGETHER + of]
        assert 0 < together <= plans.MOST_TOGETHER[of]
        begin += (chunk - group[FIRST_CHUNKS + of]) * together
        assert begin < end
        covered.extend(range(begin, min(begin + together, end)))
    assert covered == positions_of(group).tolist()


def check_bins(plan, groups, rows, limits):
    """Rows lie in the bin of their degree: for several blocks, one block, warps."""
    entries = plan.entries_a_group
    longest = plans.WARP_ENTRIES
    while 2 * longest * plans.SHARE_OF_WARP <= entries:
        longest *= 2
    if not limits.pruned:
        longest = min(longest, limits.slots // limits.warps_per_block)
    single = min(limits.slots * 3 // 4 - plans.THREADS, plans.HUB)
    while limits.pruned and single * limits.blocks < entries:
        single *= 2
    of_warps = [min(longest, limit) for limit, *_ in plans.WARP_BINS]
    most = [rows.indices.size, max(single, longest), *of_warps, 0]
    for group in groups:
        for kind in range(RANGES):
            begin, end = group[kind], group[ENDS + kind]
            degrees = plan.degrees[begin:end]
            assert (degrees <= most[kind]).all()
            assert (degrees > most[kind + 1]).all()
            # Vertices of one degree, or nearly, come in their own order.
            listed = plan.vertices[begin:end]
            # in a merged class, class after class
            if kind > 1 and len(groups) == plan.levels[0, END_ROW]:
                assert (np.diff(listed) > 0).all()


def check_tickets(group, layout):
    """Tickets cover each position for warps once; computed as the kernel's warp_ticket does."""
    covered = []
    for ticket in range(group[layout + FIRST_TICKETS + BINS]):
        kind = 0
        while ticket >= group[layout + FIRST_TICKETS + kind + 1]:
            kind += 1
        size = group[layout + TICKET_SIZES + kind]
        begin, end = group[WARP_ROWS + kind], group[ENDS + WARP_ROWS + kind]
        begin += (ticket - group[layout + FIRST_TICKETS + kind]) * size
        end = min(begin + size, end)
        assert begin < end
        assert size <= max(plans.WARP_BINS[kind][2:])
        covered.extend(range(begin, end))
    assert covered == positions_of(group, WARP_ROWS).tolist()


def check_hubs(plan, groups, limits):
    """Pieces belong to their hubs, and tables of one batch lie side by side in one class."""
    bounds = groups[:, [HUBS, ENDS + HUBS]]
    of_piece, batch_pieces = plan.hubs["of_piece"], plan.hubs["batch_pieces"]
    positions = np.sort(np.concatenate([np.arange(first, last) for first, last in bounds]))
    number = positions.size
    assert plan.table_slots >= 1
    assert plan.number_of_hubs == number
    assert all(array.size for array in plan.hubs.values())  # the kernel gets no empty array
    if number == 0:
        assert (groups[:, FIRST_BATCH] == groups[:, END_OF_BATCHES]).all()
        return
    hubs, piece_hub = np.unique(of_piece, axis=0), of_piece[:, hub_pieces.HUB_NUMBER]
    assert np.array_equal(hubs[:, hub_pieces.HUB_NUMBER], np.arange(number))
    assert np.array_equal(hubs[:, hub_pieces.HUB_POSITION], positions)
    pieces = hubs[:, hub_pieces.END_PIECE] - hubs[:, hub_pieces.FIRST_PIECE]
    assert (pieces > 0).all()
    assert np.array_equal(piece_hub, np.repeat(np.arange(number), pieces))
    assert np.array_equal(hubs[:, hub_pieces.END_PIECE], np.cumsum(pieces))
    stretches = -(-plan.degrees[positions] // THREADS)
    assert (pieces <= stretches).all()
    # What the pieces of a hub may leave there finds room in its table.
    if limits.handed_over is None:
        assert (-(-stretches // pieces) * THREADS < limits.slots).all()
        labels = plan.degrees[positions]
    else:
        labels = 2 * pieces * (limits.handed_over + 1)
    all_slots = hubs[:, hub_pieces.HUB_SLOTS]
    assert (all_slots >= labels).all()
    assert (all_slots & (all_slots - 1) == 0).all()
    # Batches cut the pieces between hubs; those of a class follow one another.
    firsts, lasts = groups[:, FIRST_BATCH], groups[:, END_OF_BATCHES]
    by_position = np.argsort(bounds[:, 0], kind="stable")
    of_class = by_position[np.searchsorted(bounds[by_position, 0], positions, side="right") - 1]
    assert batch_pieces[firsts.min()] == 0
    assert batch_pieces[lasts.max()] == piece_hub.size
    seen = 0
    for c, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        for batch in range(first, last):
            begin, end = batch_pieces[batch], batch_pieces[batch + 1]
            members = np.unique(piece_hub[begin:end])
            assert members.size
            assert pieces[members].sum() == end - begin
            assert (of_class[members] == c).all()
            base, slots = hubs[members, hub_pieces.HUB_BASE], all_slots[members]
            order = np.argsort(base)
            ends = (base + slots)[order]
            assert base.min() >= 0
            assert (base[order][1:] >= ends[:-1]).all()
            assert ends[-1] <= plan.table_slots
            assert members.size == 1 or ends[-1] <= hub_pieces.BATCH_SLOTS
            seen += members.size
    assert seen == number


@pytest.mark.parametrize("classes", [1, 3, 32])
@pytest.mark.parametrize("name", GRAPHS)
def test_awkward_graphs(name, classes):
    graph = glp_rapids.as_graph(**GRAPHS[name](), device="cpu")
    for direction in ("in", "out", "both") if graph.directed else ("in",):
        check(graph.rows(direction), classes, MANY)


@pytest.mark.parametrize("classes", [1, 3, 32])
@pytest.mark.parametrize(
    "limits", [MANY, FEW, UNPRUNED], ids=["many blocks", "few blocks", "unpruned"]
)
@pytest.mark.parametrize("batch_slots", [1, 1 << 12, 1 << 22])
def test_hubs(monkeypatch, classes, limits, batch_slots):
    monkeypatch.setattr(plans, "HUB", 200)
    monkeypatch.setattr(hub_pieces, "PIECE", 1)
    monkeypatch.setattr(hub_pieces, "BATCH_SLOTS", batch_slots)
    graph = glp_rapids.as_graph(hubs_of_many_sizes(), device="cpu")
    plan = check(graph.rows(), classes, limits)
    groups = plan.groups[:classes]
    hubs = int((groups[:, ENDS + HUBS] - groups[:, HUBS]).sum())
    if limits is not FEW:
        assert hubs == np.count_nonzero(graph.degree > 200) > 10
        if limits is MANY:
            assert plan.hubs["of_piece"].shape[0] > hubs
        # Rows too long for a warp, too short for several blocks.
        assert (groups[:, ENDS + BLOCK_ROWS] > groups[:, BLOCK_ROWS]).any()
        batches = int((groups[:, END_OF_BATCHES] - groups[:, FIRST_BATCH]).sum())
        if batch_slots == 1:
            assert batches == hubs
        elif batch_slots == 1 << 22:
            assert batches == np.count_nonzero(groups[:, ENDS + HUBS] > groups[:, HUBS])
    elif classes == 1:
        # A block would wait for the others anyhow: it takes rows of up to its share alone.
        assert hubs == 0


def test_more_vertices_than_tickets_of_the_least_size():
    """Where warps are few, tickets grow; and the vertices are looked at in several parts."""
    star = np.arange(1, 150_001)
    graph = glp_rapids.as_graph((np.zeros_like(star), star), device="cpu")
    plan = check(graph.rows(), 1, FEW)
    sizes = plan.groups[0, TICKET_SIZES : TICKET_SIZES + BINS]
    assert sizes[-1] == 512
    assert sizes[0] == 1


@given(edge_frames(), st.sampled_from([1, 3, 32]), st.sampled_from([MANY, FEW, UNPRUNED]))
def test_drawn_graphs_with_small_limits(frame, classes, limits):
    graph = glp_rapids.as_graph(**frame, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TINY.items():
            patch.setattr(plans, name, value)
        patch.setattr(hub_pieces, "BATCH_SLOTS", TINY_BATCH)
        check(graph.rows(), classes, limits)
