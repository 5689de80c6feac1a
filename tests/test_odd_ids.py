"""Ids of text files that look like mistakes are warned of, and stay what they are."""

import re
import warnings
from itertools import pairwise

import pytest
from command_line import cpu

from glp_rapids import as_graph

ROWS = "".join(f"{one},{one + 1}\n" for one in range(1, 60))
WARNED = {
    "nothing": (ROWS + "1,NULL\n2,NULL\n", "column 'dst' has 'NULL' at row 59, which is an id"),
    "nothing among texts": ("a,b\nb,\\N\n", r"column 'dst' has '\\N' at row 1, which is an id"),
    "what Python writes": (
        ROWS + "nan,1\n2,nan\n3,null\n",
        "column 'src' has 'nan' at row 59 and column 'dst' has 'nan' at row 60, which is an id as "
        "any other here, and joins all that are in such rows (3 of 62); leave these rows out",
    ),
    "a zero": (ROWS + "0012,5\n", "column 'src' has '0012' at row 59, where other ids are int"),
    "a sign": (ROWS + "7,+12\n", "column 'dst' has '+12' at row 59, where other ids are int"),
    "a second line of names": (ROWS + "src,dst\n", "has 'src' at row 59, where other ids are int"),
    "a point": (ROWS + "2.0,5\n", "column 'src' has '2.0' at row 59, where other ids are written"),
    "blanks": ("ann ,bob\nbob,ann\n", "has 'ann ' at row 0, and the same id without the blank"),
}  # fmt: skip
FINE = {
    "integers": ROWS,
    "texts": "ann,bob\nbob,cy\n",
    "names among integers": ROWS + "ann,5\nbob,7\ncy,8\n",
    "points in all": "1.0,2.0\n2.0,3.0\n",
    "blanks behind integers": "1 ,2\n2,3 \n",
    "blanks behind all": "ann ,bob \nbob ,cy \n",
    "few": "1,2\n2,x\n",
    "integers beside two texts": "".join(f"{one},{'ab'[one % 2]}\n" for one in range(99)),
    "none": "",
}


def written(tmp_path, rows):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\n" + rows)
    return path


@pytest.mark.parametrize("name", WARNED)
def test_odd_ids_are_warned_of_once(tmp_path, name):
    rows, words = WARNED[name]
    with pytest.warns(UserWarning, match=re.escape(words)) as caught:
        graph = as_graph(written(tmp_path, rows), device="cpu")
    assert len(caught) == 1
    assert graph.vertices.columns[0].family == "string"
    ends = {end for row in rows.split() for end in row.split(",") if " " not in rows}
    assert not ends or set(graph.external()) == ends


@pytest.mark.parametrize("name", FINE)
def test_usual_ids_are_not(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_graph(written(tmp_path, FINE[name]), device="cpu")


def test_a_line_of_names_that_was_taken_for_an_edge(tmp_path, capsys):
    path = written(tmp_path, ROWS)
    with pytest.warns(UserWarning, match="its first row has 'src' and 'dst', which look") as caught:
        assert cpu("label-propagation", path, "--no-header") == 0
    assert len(caught) == 1
    assert "src," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "warned"),
    [
        ("payer,payee\n1,2\n", "its first row has 'payer' and 'payee', which look like names"),
        ("Source,Target\nann,bob\n", "its first row has 'Source' and 'Target', which look"),
        ("payer,7\n1,2\n", ""),
        ("ann,bob\n1,2\ncy,3\n", ""),
        ("ann,bob\n", ""),
        ("ann,bob\nbob,cy\n", ""),
    ],
)
def test_a_first_row_that_looks_like_names(tmp_path, rows, warned):
    path = tmp_path / "edges.csv"
    path.write_text(rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert cpu("label-propagation", path, "--no-header") == 0
    assert [warned in str(one.message) for one in caught] == [True] * bool(warned)


@pytest.mark.parametrize(("weight", "distance"), [("3", 5), ("4", 0.5), ("minutes", 5)])
def test_a_weight_without_a_name_is_in_the_column_that_a_number_names(
    tmp_path, weight, distance, capsys
):  # fmt: skip
    path = tmp_path / "edges.txt"
    path.write_text("1 2 5 0.5\n2 3 7 1\n")
    assert cpu("sssp", path, "--no-header", "--weight", weight, "--start", "1") == 0
    assert float(capsys.readouterr().out.splitlines()[2].split(",")[1]) == distance


@pytest.mark.parametrize("weight", ["0", "1", "2"])
def test_a_weight_is_neither_end(tmp_path, weight, capsys):
    path = tmp_path / "edges.txt"
    path.write_text("1 2 5\n")
    assert cpu("sssp", path, "--no-header", "--weight", weight, "--start", "1") == 2
    assert f"--weight {weight}: with --no-header columns 1 and 2" in capsys.readouterr().err


def test_an_id_that_is_missing_is_no_odd_one(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="holds 1 null"):
            as_graph(written(tmp_path, ROWS + ",5\n"), device="cpu")


def test_the_first_of_many_ids_with_blanks_is_shown(tmp_path):
    ids = [f"account {number}" for number in range(30_000)]
    rows = "".join(f"{one} ,{other}\n" for one, other in pairwise(ids))
    with pytest.warns(UserWarning, match="has 'account 1 ' at row 1, and the same id without"):
        as_graph(written(tmp_path, rows), device="cpu")
