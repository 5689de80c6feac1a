"""The command line: the demonstration, clusters around a blacklist, a monitor."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import cpu, fails

from glp_rapids.cli import main
from glp_rapids.frames import files
from glp_rapids.fraud import Monitor, find_clusters


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run a small demo; give its folder and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "glp_rapids.cli", "demo", "--transactions", "50000"]
    done = subprocess.run(
        [*command, "--device", "cpu", "--output", str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_demo_finds_the_rings(demo):
    folder, printed = demo
    for title in ("all members", "not on the blacklist"):
        line = next(line for line in printed.splitlines() if title in line)
        precision, recall = map(float, line.split()[-2:])
        assert precision > 0.9
        assert recall > 0.5  # one ring of two: the large demo is held to more
    members = pd.read_parquet(folder / "members.parquet")
    assert list(members.columns) == ["vertex", "cluster", "score", "is_seed"]
    assert (folder / "ring.png").read_bytes().startswith(b"\x89PNG")


def test_demo_does_without_pictures_and_parquet(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(files, "has_pyarrow", lambda: False)
    assert cpu("demo", "--transactions", 20_000, "--output", tmp_path) == 0
    assert (tmp_path / "members.csv").exists()
    out = capsys.readouterr().out
    assert "matplotlib is missing" in out
    assert "pyarrow is missing" in out
    assert "--transactions must be at least" in fails(capsys, "demo", "--transactions", 10)
    assert "--top must be at least 0, not -3" in fails(capsys, "demo", "--top", -3)


def test_fraud_on_what_the_demo_wrote(demo, tmp_path, capsys):
    folder, _ = demo
    transactions, seeds = folder / "transactions.parquet", folder / "blacklist.csv"
    outputs = {"--output": "m.parquet", "--clusters": "c.csv", "--scores": "s.csv"}
    chosen = [word for option, name in outputs.items() for word in (option, tmp_path / name)]
    assert cpu("fraud", transactions, "--seeds", seeds, "--days", 30, *chosen) == 0
    out = capsys.readouterr().out
    assert "50,000, of which 50,000 in the window" in out
    members = pd.read_parquet(tmp_path / "m.parquet")
    pd.testing.assert_frame_equal(members, pd.read_parquet(folder / "members.parquet"))
    assert len(pd.read_csv(tmp_path / "c.csv")) == members["cluster"].nunique()
    assert pd.read_csv(tmp_path / "s.csv")["score"].max() == 1


PAYMENTS = "payer,payee,eur,when\n" + "".join(
    f"{a},{b},5,2026-01-0{day}\n"
    for day, names in ((1, "vwxyz"), (9, "abcde"))
    for a in names
    for b in names
    if a < b
)
COLUMNS = ("--source", "payer", "--destination", "payee", "--time", "when", "--amount", "eur")


@pytest.fixture
def payments(tmp_path):
    path = tmp_path / "payments.csv"
    path.write_text(PAYMENTS)
    return path


def fraud(payments, seeds, *options):
    path = payments.parent / "seeds.txt"
    path.write_text(seeds)
    return ["fraud", str(payments), "--seeds", str(path), *COLUMNS, *map(str, options)]


def test_fraud_keeps_to_its_window(payments, capsys):
    small = ("--minimum-size", 5, "--minimum-partners", 4)
    assert cpu(*fraud(payments, "a\nv\n", "--days", 3, *small)) == 0
    out = capsys.readouterr().out
    assert "20, of which 10 in the window" in out
    assert "2 ids, of which 1 in the window" in out
    assert "1 with 5 accounts, 4 of them not on the blacklist" in out
    assert cpu(*fraud(payments, "a\nv\n", "--days", 3, *small, "--top", 0)) == 0
    out = capsys.readouterr().out
    assert out.endswith("\nnone is shown, as --top is 0\n")
    assert "Empty" not in out
    assert cpu(*fraud(payments, "a\nv\n")) == 0
    assert "20, of which 20 in the window" in capsys.readouterr().out


def test_monitor_replays_what_the_demo_wrote(demo, tmp_path, capsys):
    folder, _ = demo
    transactions, seeds = folder / "transactions.parquet", folder / "blacklist.csv"
    outputs = ["--output", tmp_path / "a.csv", "--members", tmp_path / "m.parquet"]
    words = ["--days", 30, "--every", "3D", *outputs, "--folder", tmp_path / "watch"]
    assert cpu("monitor", transactions, "--seeds", seeds, *words) == 0
    out = capsys.readouterr().out
    assert re.search(r"^2026-01-\d\d 00:00:00  new    \d+:\d+ +\d+ joined    0 left", out, re.M)
    assert "10 ticks" in out
    alerts = pd.read_csv(tmp_path / "a.csv")
    assert f"{len(alerts)} alerts" in out
    found = pd.read_parquet(tmp_path / "m.parquet")
    wanted = pd.read_parquet(folder / "members.parquet")
    assert len(set(found["vertex"]) ^ set(wanted["vertex"])) <= 2  # scores are within tol
    watch = Monitor.open(tmp_path / "watch", device="cpu")
    assert set(watch.window.edges().columns) == {"source", "destination", "transfers", "amount"}
    assert len(watch.window) == 50_000
    for every, said in (
        ("0h", "--every must be above 0"), ("x", "--every must be a length"), ("0", "above 0"),
    ):  # fmt: skip
        words = [transactions, "--seeds", seeds, "--days", 3, "--every", every]
        assert said in fails(capsys, "monitor", *words)
    words = ["none.csv", "--seeds", seeds, "--days", 3, "--port", 65536]
    assert "--port must be from 0 to 65535" in fails(capsys, "monitor", *words)
    (tmp_path / "none.txt").write_text("123456789\n")
    words = [transactions, "--seeds", tmp_path / "none.txt", "--days", 3]
    assert "none of its ids is in the transactions" in fails(capsys, "monitor", *words)


CLIQUE = [(a, b) for a in range(7) for b in range(a)]


def replayed(tmp_path, capsys, times, *options, ending="csv"):
    """Replay cliques among the same accounts, each at a time; give the events by line."""
    frame = pd.DataFrame(CLIQUE * len(times), columns=["source", "destination"])
    column = pd.Series(times).repeat(len(CLIQUE)).reset_index(drop=True)
    path, seeds = tmp_path / f"rows.{ending}", tmp_path / "black.txt"
    frame = frame.assign(amount=1.0, time=column)
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    seeds.write_text("1\n")
    assert cpu("monitor", path, "--seeds", seeds, "--minimum-score", 0.01, *options) == 0
    lines = capsys.readouterr().out.splitlines()
    return [re.split(r"  +", line)[:2] for line in lines if " joined " in line]


def test_a_cluster_is_gone_when_it_has_left_though_nothing_came(tmp_path, capsys):
    times = ["2026-01-01", "2026-01-02", "2026-03-01"]
    assert replayed(tmp_path, capsys, times, "--days", 3) == [
        ["2026-01-02 00:00:00", "new"], ["2026-01-05 00:00:00", "gone"],
        ["2026-03-02 00:00:00", "new"],
    ]  # fmt: skip


def test_summer_time_ends_and_begins_in_a_replay(tmp_path, capsys):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for zone, start in (("Europe/Berlin", "2025-10-26 00:30"), ("America/Santiago", "2024-09-08")):
        times = pd.date_range(start, periods=3, freq="h", tz="UTC").tz_convert(zone)
        for ending in ("parquet", "csv"):  # in which it is a text with an offset
            found = replayed(
                tmp_path, capsys, times, "--days", 1, "--every", "1h", ending=ending
            )
            first = pd.Timestamp(start, tz="UTC").floor("h") + pd.Timedelta(hours=1)
            assert found == [[str(first), "new"]]


def test_a_number_counts_the_unit_of_times(tmp_path, capsys):
    hour = 3600
    for every in ((), ("--every", "86400"), ("--every", "24h")):
        how = "--days", 1, "--time-unit", "s", *every
        found = replayed(tmp_path, capsys, [0, 30 * hour, 200 * hour], *how)
        assert [(float(end), event) for end, event in found] == [
            (86400.0, "new"), (259200.0, "gone"), (777600.0, "new"),
        ]  # fmt: skip
    found = replayed(tmp_path, capsys, ["2026-01-01", "2026-01-02"], "--days", 9, "--every", "1")
    assert found == [["2026-01-02 00:00:00", "new"]]


def test_ticks_of_fractions_do_not_drift(tmp_path, capsys):
    """46 of them are 4.6, and added up a little more: the window would end a tick too late."""
    how = "--days", 4.6000000000000005, "--every", 0.1
    found = replayed(tmp_path, capsys, [0.05, 4.6000000000000005], *how)
    assert [event for _, event in found] == ["new"]


@pytest.mark.parametrize(("every", "words"), [("1e-320", "too short"), ("1e300", "--every 1e300")])
def test_ticks_that_could_not_be_counted(tmp_path, every, words, capsys):
    (tmp_path / "rows.csv").write_text("source,destination,amount,time\n1,2,1,3.5\n")
    (tmp_path / "black.txt").write_text("1\n")
    given = tmp_path / "rows.csv", "--seeds", tmp_path / "black.txt", "--days", 1
    if every == "1e300":
        (tmp_path / "rows.csv").write_text("source,destination,amount,time\n1,2,1,2026-01-01\n")
    assert words in fails(capsys, "monitor", *given, "--every", every)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("time", "", r"holds 1 null\(s\)"),
        ("amount", "-5", r"negative .* the first -5\.0 at row 17"),
    ],
)
def test_all_rows_are_checked_before_the_first_tick(tmp_path, column, value, words, capsys):
    frame = pd.DataFrame(CLIQUE, columns=["source", "destination"]).astype(str)
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(len(frame)), "D")
    frame = frame.assign(amount="1", time=days.astype(str))
    frame.loc[17, column] = value
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "black.txt").write_text("1\n")
    folder = tmp_path / "state"
    said = fails(capsys, "monitor", tmp_path / "rows.csv", "--seeds", tmp_path / "black.txt",
                 "--days", 30, "--folder", folder)  # fmt: skip
    assert re.search(words, said)
    assert not folder.exists()


def test_a_time_that_is_none_is_shown_with_its_row(payments, tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_text("source,destination,amount,time\n1,2,1,2026-01-01\n2,3,1,garbage\n")
    (tmp_path / "black.txt").write_text("1\n")
    said = fails(capsys, "monitor", path, "--seeds", tmp_path / "black.txt", "--days", 1)
    assert "2026-01-31 12:00:00, but 'garbage' at row 1" in said


@pytest.mark.parametrize(
    "seeds",
    [
        "a\n", "id\na\n", "id,by\na,b\n", '"a",known since 2024\n', "a\na\n\n",
        "a known since 2024\n", "a\tknown mule\n\n", "  a  \n",
    ],
)
def test_blacklists_in_any_form(payments, seeds, capsys):
    assert cpu(*fraud(payments, seeds)) == 0
    assert "1 ids, of which 1 in the window" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seeds", "options", "words"),
    [
        ("", [], "holds no ids"),
        ("q\n", [], "none of its ids is in the transactions"),
        (",vertex\nq,soon\n", [], "its lines have several fields, of which not only the first"),
        ("ring,vertex\n1,a\n", [], "its lines have several fields"),
        ("a\nb,c\n", [], "its lines have several fields"),
        ("a,b\n", [], "its lines have several fields"),
        ("a b\n", [], "its lines have several fields"),
        ("a\n", ["--top", "-1"], "--top must be at least 0, not -1"),
        ("a\n", ["--amount", "usd"], "no column 'usd' (--amount)"),
        ("a\n", ["--seed-column", "account"], "no column 'account' (--seed-column)"),
        ("a\n", ["--days", "0"], "days must be positive"),
        ("a\n", ["--days", "3", "--time", "payer"], "--source and --time both name 'payer'"),
        ("a\n", ["--minimum-share", "2"], "--minimum-share must be"),
        ("a\n", ["--output", "x.docx"], "the format is not clear"),
    ],
)
def test_bad_input_of_fraud(payments, seeds, options, words, capsys):
    assert words in fails(capsys, *fraud(payments, seeds, "--device", "cpu", *options))


def test_blanks_are_parts_of_ids_where_the_transactions_have_some(tmp_path, capsys):
    payments = tmp_path / "payments.csv"
    payments.write_text(PAYMENTS.replace("a,", "ann may,").replace(",a", ",ann may"))
    assert cpu(*fraud(payments, "ann may\nb\n")) == 0
    assert "2 ids, of which 2 in the window" in capsys.readouterr().out
    assert cpu(*fraud(payments, "ann\nb\n")) == 0
    assert "2 ids, of which 1 in the window" in capsys.readouterr().out


def test_times_that_are_none(tmp_path, capsys):
    path = tmp_path / "payments.csv"
    path.write_text("payer,payee,eur,when\na,b,5,soon\n")
    assert "neither numbers nor dates" in fails(capsys, *fraud(path, "a\n", "--days", 3))


@pytest.mark.parametrize("name", ["size", "score", "share", "partners"])
def test_limits_are_those_of_the_library(payments, name, monkeypatch, capsys):
    """What is not given is not passed on, and the help says what it is then."""
    default = inspect.signature(find_clusters).parameters[f"minimum_{name}"].default
    given = []
    monkeypatch.setattr(
        "glp_rapids.fraud.find_clusters",
        lambda *seeds, **limits: given.append(limits) or find_clusters(*seeds, **limits),
    )
    assert cpu(*fraud(payments, "a\n", f"--minimum-{name}", default)) == 0
    assert cpu(*fraud(payments, "a\n")) == 0
    others = {"memory_limit": None, "progress": False}
    assert given == [{f"minimum_{name}": default, **others}, others]
    with pytest.raises(SystemExit):
        main(["fraud", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert f"(default {default})" in text[text.rindex(f"--minimum-{name}") :][:100]


def test_seeds_that_are_no_integers(tmp_path, capsys):
    path = tmp_path / "payments.csv"
    path.write_text("payer,payee,eur,when\n1,2,5,1\n")
    assert "'a1' is none" in fails(capsys, *fraud(path, "1\na1\n"))


def test_a_limit_of_memory(payments, capsys):
    """It is checked before the file is read, and what takes more is refused by how much."""
    wrong = fails(capsys, *fraud(payments, "a\n", "--memory-limit", "2X"))
    assert "--memory-limit must be" in wrong
    assert cpu(*fraud(payments, "a\n", "--memory-limit", "1GB")) == 0
    said = fails(capsys, *fraud(payments, "a\n", "--memory-limit", 1))
    assert "too little for find_clusters of its" in said
    assert "--memory-limit=1 bytes is" in said


def test_a_blacklist_outside_the_window_is_told_from_an_unknown_one(tmp_path, capsys):
    path, seeds = tmp_path / "payments.csv", tmp_path / "list.txt"
    path.write_text("source,destination,amount,time\na,b,1,0\nb,c,1,20\nc,d,1,40\n")
    seeds.write_text("a\n")
    command = "fraud", path, "--seeds", seeds, "--device", "cpu", "--days", 30
    said = fails(capsys, *command)
    assert "is in the window, of the last 30 days: 2 of 3 transactions; 'a' is in the" in said
    assert "is --days right, and --time-unit?" in said
    seeds.write_text("nobody\n")
    assert "none of its ids is in the transactions: 'nobody'" in fails(capsys, *command)


def test_ticks_without_number_are_warned_of(tmp_path, capsys):
    path, seeds = tmp_path / "payments.csv", tmp_path / "list.txt"
    rows = "".join(f"a,b,1,{second}\n" for second in (0, 10, 86_400, 200_000))
    path.write_text("source,destination,amount,time\n" + rows)
    seeds.write_text("a\n")
    command = "monitor", path, "--seeds", seeds, "--days", 30
    assert cpu(*command, "--time-unit", "s", "--every", "1D") == 0
    assert "warning" not in capsys.readouterr().err
    assert cpu(*command, "--every", "3D") == 0
    said = capsys.readouterr().err
    assert "of 4 transactions to the last it is 66,667 times 3D; is --time-unit D right?" in said
    dates = rows.replace("200000", "2026-03-01").replace("86400", "2026-02-01")
    dates = dates.replace("1,0\n", "1,2026-01-01\n").replace("1,10\n", "1,2026-01-02\n")
    path.write_text("source,destination,amount,time\n" + dates)
    assert cpu(*command, "--every", "1min") == 0
    assert "times 1min; is --every long enough?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["fraud", "--output"], ["fraud", "--clusters"], ["communities", "--levels"],
     ["diversity", "--k", "2", "--top", "1", "--contexts"]],
)  # fmt: skip
def test_results_that_cannot_go_to_stdout(payments, tmp_path, words, capsys):
    seeds = tmp_path / "list.txt"
    seeds.write_text("a\n")
    command, *options = words
    more = ["--seeds", seeds] if command == "fraud" else []
    assert "-: this has to be a file; name a file named *.csv" in fails(
        capsys, command, payments, *more, *options, "-"
    )
