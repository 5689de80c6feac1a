"""Ranks that go on from an earlier result, and name communities by ids, as one process does."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from memory_limits import directions
from test_shuffle import assert_same, cases, dealt, on_ranks

import glp_rapids
from glp_rapids.graph import connected
from glp_rapids.multigpu.exchange import as_ranks, exchanges
from glp_rapids.multigpu.partition import ranges_of, rows_of_range
from glp_rapids.propagation import rank_connected, rank_warm_start
from glp_rapids.propagation.variants import classic, layered

EDGES = pd.DataFrame({"src": [1, 2, 3, 4, 5, 6, 3], "dst": [2, 3, 1, 5, 6, 4, 4]})
KNOWN = pd.DataFrame({"vertex": [6, 5, 4, 3, 2, 1], "partition": [7, 7, 7, 3, 3, 3]})


def going_on(parts, find=classic.of_program, **keywords):
    """What finds communities on a rank, from the rows of an earlier result that it has."""
    return lambda graph, options, run: find(
        graph, options, run, initial=parts[graph.part.rank], **keywords
    )


CLASSIC = partial(going_on, program=classic.Classic())


def some_rows(result, ranks, seed=0):
    """Rows in any order, some of them lost, one rank without any."""
    rows = result.sample(frac=0.8, random_state=seed)
    return [[rows[rank - 1 :: ranks - 1]] if rank else [] for rank in range(ranks)], rows


@pytest.mark.parametrize(
    ("ranks", "renumber"), [(3, True), (3, False), *exhaustive((2, True), (5, False))]
)
def test_any_graph(ranks, renumber, monkeypatch):
    monkeypatch.setattr(rank_warm_start, "A_ROUND", 5)
    for _, frame, how, whole in cases(ranks):
        earlier = glp_rapids.label_propagation(whole, seed=1, max_iter=2, renumber=renumber)
        parts, rows = some_rows(earlier, ranks)
        for direction in directions(whole):
            options = {"direction": direction, "renumber": renumber}
            expected = glp_rapids.label_propagation(whole, initial=rows, **options)
            find = CLASSIC(parts, renumber=renumber)
            found, _, reports = on_ranks(
                dealt(frame, ranks), how, find, direction=direction, explore=0
            )
            assert_same(found, reports, expected)
            assert all(report["warm"] for report in reports)


def number_of(communities):
    names = [name for name in communities if name.endswith("partition")]
    return len(communities[names].drop_duplicates())


@pytest.mark.parametrize(
    ("ranks", "renumber"), [(3, True), (3, False), *exhaustive((1, True), (2, False), (5, True))]
)
def test_communities_cut_into_connected_pieces(ranks, renumber, monkeypatch):
    monkeypatch.setattr(rank_connected, "FEWEST_AT_ONCE", 3)  # told in several rounds
    cut = 0
    for _, frame, how, whole in cases(ranks):
        for direction in directions(whole):
            # after a sweep many communities are in pieces
            options = {"direction": direction, "renumber": renumber, "max_iter": 1}
            expected = glp_rapids.label_propagation(whole, connected=True, **options)
            cut += number_of(expected) > number_of(glp_rapids.label_propagation(whole, **options))
            find = partial(
                classic.of_program, program=classic.Classic(), renumber=renumber, connected=True
            )
            found, _, reports = on_ranks(
                dealt(frame, ranks), how, find, direction=direction, max_iter=1
            )
            assert_same(found, reports, expected)
    assert cut


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_pieces_of_any_communities(ranks, weighted, monkeypatch):
    monkeypatch.setattr(rank_connected, "FEWEST_AT_ONCE", 7)
    draw = np.random.default_rng(ranks)
    for number in range(20):
        ends = draw.integers(0, 40, (60, 2))
        weights = draw.integers(0, 2, 60) if weighted else None
        frame = pd.DataFrame({"src": ends[:, 0], "dst": ends[:, 1], "w": weights})
        how = {"weight": "w"} if weighted else {}
        graph = glp_rapids.as_graph(
            frame, directed=number % 2 == 1, vertices=range(45), device="cpu", **how
        )
        rows, labels = graph.rows("in"), draw.integers(0, 3, 45)
        bounds = ranges_of(rows.indptr, ranks)
        parts = [rows_of_range(rows, *bounds[rank : rank + 2]) for rank in range(ranks)]
        told, find = exchanges(ranks), rank_connected.connected_parts_of_ranks
        works = [partial(find, told[rank], parts[rank], labels) for rank in range(ranks)]
        expected = connected.connected_parts(rows, labels).tolist()
        found = as_ranks(works, told[0].abort)
        assert [one.tolist() for one in found] == [expected] * ranks


@pytest.mark.parametrize("ranks", [3, *exhaustive(1, 2, 5)])
def test_communities_named_by_ids(ranks):
    for _, frame, how, whole in cases(ranks):
        expected = glp_rapids.label_propagation(whole, renumber=False)
        find = partial(classic.of_program, program=classic.Classic(), renumber=False)
        found, _, reports = on_ranks(dealt(frame, ranks), how, find)
        assert_same(found, reports, expected)


def test_layers():
    for _, frame, how, whole in cases(3):
        earlier = glp_rapids.layered_label_propagation(whole, gammas=[0.5, 4], max_iter=2)
        parts, rows = some_rows(earlier, 3)
        if rows.empty:
            continue
        expected = glp_rapids.layered_label_propagation(whole, gammas=[4, 0.5], initial=rows)
        find = going_on(parts, layered.layers, gammas=[4, 0.5])
        found, _, reports = on_ranks(dealt(frame, 3), how, find, explore=0)
        assert_same(found, reports, expected)


class Quiet(glp_rapids.Program):
    """Nobody hears of those who are silent."""

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight if state.labels[u] >= 0 else 0


@pytest.mark.parametrize("silent", [-1, None])
def test_vertices_that_are_silent(silent):
    known = KNOWN.astype({"partition": "Int64"})
    known.loc[2, "partition"] = silent
    expected = glp_rapids.propagate(EDGES, Quiet(), initial=known, device="cpu", max_iter=1)
    parts = [[known[:2]], [], [known[2:]]]
    find = going_on(parts, program=Quiet())
    found, _, reports = on_ranks(dealt(EDGES, 3), {}, find, explore=0, max_iter=1)
    assert_same(found, reports, expected)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (KNOWN.rename(columns={"partition": "community"}), ValueError, "no column 'partition'"),
        (KNOWN.rename(columns={"vertex": "v"}), ValueError, "no column 'vertex'"),
        (KNOWN.rename(columns={"vertex": "0_vertex"}).assign(**{"1_vertex": 1}), ValueError,
         "an id of this graph has 1"),
        (KNOWN.astype({"vertex": str}), TypeError, "initial holds"),
        (KNOWN.assign(partition=[1, 1, None, 1, 1, 1]), ValueError, "null"),
        (pd.concat([KNOWN, KNOWN[:1].assign(partition=3)]), ValueError,
         "initial names the vertex 6 twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_result_is_said(given, error, said, monkeypatch):
    monkeypatch.setattr(rank_warm_start, "A_ROUND", 2)
    with pytest.raises(error, match=said):
        glp_rapids.label_propagation(EDGES, initial=given, device="cpu")
    parts = [[given[:3]], [], [given[3:]]]
    with pytest.raises(error, match=said):
        on_ranks(dealt(EDGES, 3), {}, CLASSIC(parts), explore=0)


def test_a_layer_that_is_not_there():
    earlier = glp_rapids.layered_label_propagation(EDGES, gammas=[2, 1], device="cpu")
    find = going_on([[earlier[:3]], [earlier[3:]]], layered.layers, gammas=[8.0])
    with pytest.raises(ValueError, match="no rows of gamma=8; there are 1, 2"):
        on_ranks(dealt(EDGES, 2), {}, find, explore=0)
    one = going_on([[earlier[6:]], [earlier[:6]]], layered.layers, gammas=[2.0])
    found, _, _ = on_ranks(dealt(EDGES, 2), {}, one, explore=0)
    assert np.array_equal(found["partition"], earlier["partition"][:6])
