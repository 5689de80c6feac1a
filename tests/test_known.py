"""Several blacklists are kept apart, and accounts known to be honest carry nothing on."""

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from exact_scores import as_near, exact_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from test_account_scores import graph_of, weighted_pairs

from glp_rapids.fraud import account_scores, find_clusters

EDGES = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "d"]})


@settings(max_examples=60, deadline=None)
@given(
    pairs=weighted_pairs,
    known=st.dictionaries(
        st.integers(0, 12), st.sampled_from(["good", "card", "mule"]), min_size=1
    ),
)
def test_parts_of_kinds_add_up_and_honest_accounts_stay_at_0(pairs, known):
    graph = graph_of(pairs)
    good = [v for v, kind in known.items() if kind == "good"]
    bad = {v: kind for v, kind in known.items() if kind != "good"}
    if not bad:
        return
    found = account_scores(graph, bad, good=good, tol=1e-6)
    whole = account_scores(graph, list(bad), good=set(good), tol=1e-6)
    kinds = sorted(set(bad.values()))
    parts = [f"score_{kind}" for kind in kinds]
    assert list(found.columns) == ["vertex", "score", "is_seed", "kind", *parts]
    assert as_near(whole["score"], exact_scores(graph, bad, good), 1e-6, graph, bad, good)
    assert as_near(found["score"], whole["score"], 2e-6, graph, bad, good)
    assert (found["score"][good] == 0).all()
    assert whole.attrs["glp"]["good"] == len(good)
    for kind, part in zip(kinds, parts, strict=True):
        own = [v for v, one in bad.items() if one == kind]
        others = [v for v in known if v not in own]
        assert as_near(found[part], exact_scores(graph, own, others), 1e-6, graph, known)
    values = found[parts].to_numpy()
    strongest = np.array(kinds)[values.argmax(axis=1)]
    silent = values.max(axis=1) == 0
    assert found["kind"].isna().tolist() == silent.tolist()
    assert (found["kind"][~silent] == strongest[~silent]).all()
    warm = account_scores(graph, bad, good=good, tol=1e-6, previous=found)
    assert np.abs(warm["score"] - found["score"]).max() <= 2e-6


def test_clusters_take_kinds_and_honest_accounts(device):
    ring = [(f"p{i}", f"p{j}") for i in range(7) for j in range(i)]
    edges = pd.DataFrame(ring, columns=["src", "dst"])
    found = find_clusters(edges, {"p0": 2, "p1": 1}, device=device)
    assert found.members["vertex"].nunique() == 7
    assert found.scores["kind"].tolist()[:2] == [2, 1]
    assert found.scores["kind"].tolist()[2:] == [1] * 5  # of equal parts the first
    cleared = find_clusters(edges, ["p0"], good=["p6"], device=device, minimum_size=3)
    assert "p6" not in cleared.members["vertex"].tolist()


@pytest.mark.parametrize("loops", [1, 2, 12])
def test_what_accounts_pay_to_themselves_hides_nobody(loops, device):
    ring = [(i, j) for i in range(8) for j in range(i)]
    rest = [(20 + i, 21 + i) for i in range(9)] + [(7, 20)]
    expected = find_clusters(pd.DataFrame(ring + rest, columns=["src", "dst"]), [0], device=device)
    assert len(expected.members) == 8
    for who in (range(8), [7]):
        edges = ring + rest + [(one, one) for one in who] * loops
        frame = pd.DataFrame(edges, columns=["src", "dst"]).sample(frac=1, random_state=0)
        found = find_clusters(frame, [0], device=device)
        for name in ("clusters", "members"):
            one, other = getattr(found, name), getattr(expected, name)
            assert one.equals(other)


def test_nobody_is_a_partner_of_its_own(device):
    star = [(0, 1), (0, 2), (0, 3), (3, 4)]
    expected = account_scores(pd.DataFrame(star, columns=["a", "b"]), [1], hubs=3,
                              source="a", destination="b", device=device)  # fmt: skip
    loop = pd.DataFrame([*star, (0, 0)], columns=["a", "b"])
    found = account_scores(loop, [1], hubs=3, source="a", destination="b", device=device)
    assert found["score"].tolist() == expected["score"].tolist()
    assert found["score"].to_numpy().min() > 0
    for beside in ([(4, 4)], [(4, 4), (3, 3)]):
        more = pd.DataFrame([*star, (0, 0), *beside], columns=["a", "b"])
        same = account_scores(more, [1], hubs=3, source="a", destination="b", device=device)
        assert np.abs(same["score"].to_numpy() - expected["score"].to_numpy()).max() < 1e-3
    fewer = account_scores(loop, [1], hubs=2, source="a", destination="b", device=device)
    assert fewer["score"].tolist()[0] == 0


def test_a_seed_may_be_absent_of_each_kind(device):
    seeds = {"a": 1, "z": 2}
    found = account_scores(EDGES, seeds, absent="drop", good=["nobody"], device=device)
    assert (found["score_2"] == 0).all()
    assert (found["kind"] == 1).all()
    assert found.attrs["glp"]["absent"] == 1
    with pytest.warns(UserWarning, match="seeds are empty: every score is 0"):
        assert (account_scores(EDGES, {}, absent="drop", device=device)["score"] == 0).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seeds": ["a"], "good": ["a", "b"]}, ValueError, "good and seeds both hold 1 .*'a'"),
        ({"seeds": ["a"], "good": ["z"]}, ValueError, "good holds 1 id"),
        ({"seeds": ["a"], "good": [1]}, TypeError, "good holds"),
        ({"seeds": ["a"], "good": "b"}, TypeError, "good must be"),
        *exhaustive(
            ({"seeds": ["a"], "good": {"b": 1}}, TypeError, "good must be"),
            ({"seeds": {"a": None}}, TypeError, "seeds: kinds must be"),
            ({"seeds": {"a": 1, "b": "x"}}, TypeError, "seeds: kinds must be"),
            ({"seeds": {}}, ValueError, "seeds are empty"),
        ),
    ],
)
def test_bad_input_of_what_is_known_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        account_scores(EDGES, device="cpu", **options)
