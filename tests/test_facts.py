"""What results say of how they were made, in ``attrs["glp"]``."""

import copy
import json
import pickle

import pandas as pd

from glp_rapids import label_propagation
from glp_rapids.frames.facts import set_attributes

EDGES = pd.DataFrame({"src": [0, 1, 2, 3], "dst": [1, 2, 0, 4]})


class Once:
    """What nobody may copy."""

    def __deepcopy__(self, memo):
        raise AssertionError("copied")


def test_columns_and_copies_of_a_result_do_not_copy_what_it_says():
    frame = set_attributes(pd.DataFrame({"vertex": [0]}), {"once": Once()})
    assert frame["vertex"].attrs["glp"].keys() == frame.copy().attrs["glp"].keys() == {"once"}


def test_what_is_added_to_a_copy_is_not_in_the_other():
    found = label_propagation(EDGES, device="cpu")
    other = found.copy()
    other.attrs["glp"]["mine"] = 1
    del other.attrs["glp"]["sweeps"]
    assert "mine" not in found.attrs["glp"]
    assert found.attrs["glp"]["sweeps"] > 0


def test_facts_are_a_dict_wherever_they_go():
    found = label_propagation(EDGES, device="cpu")
    facts = found.attrs["glp"]
    assert isinstance(facts, dict)
    assert repr(facts) == repr(dict(facts))
    assert json.loads(json.dumps({"sweeps": facts["sweeps"]}))["sweeps"] == facts["sweeps"]
    assert copy.deepcopy(facts) == facts == dict(facts)
    assert type(pickle.loads(pickle.dumps(found)).attrs["glp"]) is dict
