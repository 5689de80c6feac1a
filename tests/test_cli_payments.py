"""Files of transactions, as `glp-rapids fraud` and `monitor` read them: one, or a folder."""

import numpy as np
import pandas as pd
import pytest
from command_line import cpu, fails


def on(seeds):
    return "--seeds", seeds, "--device", "cpu"


def test_payments_without_a_row(tmp_path, capsys):
    path, seeds = tmp_path / "payments.csv", tmp_path / "list.txt"
    path.write_text("source,destination\n")
    seeds.write_text("a\n")
    assert f": error: {path}: holds no transactions" in fails(capsys, "fraud", path, *on(seeds))


PAID = "source,destination,amount,time\na,b,1,1\nb,c,2,2\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PAID.replace(",", ";"), "if that is several, save it with commas, or with tabs as"),
        (PAID.replace("b,1,", 'b,"1,50",'), "holds str, not numbers, such as '1,50' at row 0; wr"),
        (PAID.replace(",time", ",amount"), "has 2 columns named 'amount'; rename all but one"),
        (PAID.replace(",2\n", ",20260131\n"), "as a number; write dates such as 2026-01-31"),
    ],
)
def test_payments_that_cannot_be_read(text, words, tmp_path, capsys):
    path, seeds = tmp_path / "payments.csv", tmp_path / "list.txt"
    path.write_text(text)
    seeds.write_text("a\n")
    days = () if "amount,amount" in text else ("--days", 9)
    assert words in fails(capsys, "fraud", path, *on(seeds), *days)


def test_payments_in_a_folder_are_those_of_one_file(tmp_path, capsys):
    random, days, seeds = np.random.default_rng(3), tmp_path / "days", tmp_path / "list.txt"
    days.mkdir()
    ends = random.integers(0, 40, (2, 300))
    whole = pd.DataFrame({"source": ends[0], "destination": ends[1], "amount": 1.5})
    whole["time"] = pd.date_range("2026-01-01", periods=300, freq="1h")
    whole[["source", "destination"]] = whole[["source", "destination"]].astype(str)
    whole.loc[250:, "source"] += "x"
    whole.to_csv(tmp_path / "whole.csv", index=False)
    for number, part in enumerate(np.array_split(np.arange(300), 3)):  # two of integers alone
        whole.iloc[part].to_csv(days / f"{number}.csv.gz", index=False)
    (days / ".hidden.csv").write_text("none\n")
    (days / "notes.md").write_text("none\n")
    seeds.write_text("3\n7\n")
    found = {}
    for path in (tmp_path / "whole.csv", days):
        out = tmp_path / "out.csv"
        usual = path, "--seeds", seeds, "--days", 9
        assert cpu("fraud", *usual, "--scores", out) == 0
        found[path] = out.read_text()
        assert cpu("monitor", *usual, "--output", out) == 0
        found[path] += out.read_text()
    capsys.readouterr()
    assert len(set(found.values())) == 1
    (days / "9.csv").write_text("source,destination\na,b\n")
    told = fails(capsys, "fraud", days, *on(seeds))
    assert "9.csv: its columns are source, destination, but those of 0.csv.gz" in told
    told = fails(capsys, "fraud", days, *on(seeds), "--output", days / "9.csv")
    assert "--output is the file of TRANSACTIONS (9.csv) as well" in told


def test_payments_that_are_not_there(tmp_path, capsys):
    told = fails(capsys, "fraud", tmp_path, *on("list.txt"))
    assert "the folder holds no file named *.csv" in told
    told = fails(capsys, "fraud", tmp_path / "*.csv", *on("list.txt"))
    assert "there is no such file; name one file, not a pattern" in told
