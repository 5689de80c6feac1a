"""Programs are recognized for what they are: a copy of the classic runs as the classic."""

import graphs
import pandas as pd
import pytest

from glp_rapids import Program, label_propagation, propagate
from glp_rapids.propagation.program import traits_of
from glp_rapids.propagation.variants.classic import Classic
from glp_rapids.propagation.variants.layered import Layered
from glp_rapids.propagation.variants.speaker_listener import SpeakerListener


class CopyOfClassic(Program):
    def pick_label(vertex, number_of_sweep, everything):
        """Say what one holds."""
        return everything.labels[vertex]

    def load_neighbor(me, other, w, s):
        # the classic
        return s.labels[other], w

    def label_score(me, candidate, votes, s):
        return votes

    def update_vertex(me, winner, points, s):
        s.labels[me] = winner


class Unlike(Program):
    def label_score(v, label, freq, state):
        return label


@pytest.mark.parametrize("weighted", [False, True])
def test_a_copy_of_the_classic_is_taken_for_it(weighted):
    assert traits_of(CopyOfClassic(), weighted=weighted) == traits_of(Classic(), weighted=weighted)
    traits = traits_of(CopyOfClassic(), weighted=weighted)
    assert traits.plain
    assert traits.growing_scores
    assert traits.skip_inactive
    assert traits.unit_votes is not weighted


def test_what_differs_is_seen():
    traits = traits_of(Unlike(), weighted=False)
    assert not traits.default_score
    assert not traits.growing_scores
    assert not traits.skip_inactive
    assert traits.default_pick
    assert traits.default_load
    assert traits.default_update
    assert not traits_of(SpeakerListener(3), weighted=False).plain
    assert traits_of(Layered(1), weighted=False).count_volumes


@pytest.mark.parametrize("name", ["random", "weighted", "directed weighted"])
def test_a_copy_of_the_classic_gives_the_same(name, device):
    edges = graphs.GRAPHS[name]()
    copied = propagate(**edges, program=CopyOfClassic(), device=device)
    built_in = label_propagation(**edges, device=device)
    pd.testing.assert_frame_equal(copied, built_in)
    assert copied.attrs["glp"]["changed"] == built_in.attrs["glp"]["changed"]
