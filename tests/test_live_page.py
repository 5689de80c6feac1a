"""The page of a monitor, asked as a browser asks it."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest
from cases import some
from monitors import LIMITS, batches, monitor

from glp_rapids.cli import live_page, live_texts
from glp_rapids.cli.live_page import LivePage


def ask(page, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", int(page.address.split(":")[2][:-1]), 20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def events(text):
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in
              text.strip().split("\n\n") if not block.startswith(":")]  # fmt: skip
    return [(one["event"], json.loads(one["data"])) for one in blocks]


@pytest.mark.parametrize("kind", some(["integers", "strings"], "strings"))
def test_a_page_shows_alerts_clusters_and_reasons(kind):
    parts, seeds = batches(kind=kind)
    watch = monitor(seeds)
    page, ticks = LivePage(watch, "127.0.0.1", 0), []
    try:
        for number, part in enumerate(parts):
            ticks.append(watch.update(part))
            page.show(ticks[-1], str(number))
            if number > 9 and not ticks[-1].members["is_seed"].all():
                break
        tick = ticks[-1]
        answer, text = ask(page, f"/cluster?id={quote(tick.clusters['cluster_id'][0])}")
        assert answer.status == 200
        found = json.loads(text)
        members = tick.members[tick.members["cluster_id"] == tick.clusters["cluster_id"][0]]
        assert [one["vertex"] for one in found["members"]] == members["vertex"].astype(str).tolist()
        assert [one["is_seed"] for one in found["members"]] == members["is_seed"].tolist()
        edges = watch.window.edges()
        ids = members["vertex"].tolist()
        inside = edges[edges["source"].isin(ids) & edges["destination"].isin(ids)]
        inside = inside[inside["source"] != inside["destination"]]
        place = {one: i for i, one in enumerate(ids)}
        expected = {
            (*sorted((place[row.source], place[row.destination])), row.transfers)
            for row in inside.itertuples()
        }
        assert {tuple(edge) for edge in found["edges"]} == expected
        member = members["is_seed"].tolist().index(False)
        name = quote(members["cluster_id"].iloc[0])
        answer, text = ask(page, f"/explain?id={name}&member={member}")
        paths = json.loads(text)["paths"]
        assert len(paths) == 3
        assert all(path.startswith(f"{ids[member]} - ") and "(adds 0." in path for path in paths)
        for path in ("/cluster?id=none", "/explain?id=none&member=0", "/secret",
                     f"/explain?id={name}&member=x"):  # fmt: skip
            answer, text = ask(page, path)
            assert answer.status == 404
            assert json.loads(text)["error"]
        # another page that found a name for this machine
        assert ask(page, "/", Host="evil.example")[0].status == 403
        page.end()
        answer, text = ask(page, "/events")
        said = events(text)
        assert [name for name, _ in said] == ["tick"] * len(ticks) + ["end"]
        for (_, one), own in zip(said, ticks, strict=False):
            assert [alert["event"] for alert in one["alerts"]] == own.alerts["event"].tolist()
            assert one["rows"] == own.change.added
        answer, text = ask(page, "/events", **{"Last-Event-ID": str(len(ticks) - 1)})
        assert len(events(text)) == 2
        for last in (str(len(ticks) + 7), "9" * 5_000, "x"):  # of another page, or of none
            answer, text = ask(page, "/events", **{"Last-Event-ID": last})
            assert len(events(text)) == len(ticks) + 1
    finally:
        page.close()


def test_who_comes_late_is_told_the_last_ticks(monkeypatch):
    monkeypatch.setattr(live_page, "KEPT", 3)
    parts, seeds = batches()
    watch = monitor(seeds)
    page = LivePage(watch, "0.0.0.0", 0)
    try:
        assert not page.local
        tick = watch.update(parts[0])
        for number in range(5):
            page.show(tick, str(number))
        stale = page.events(9)
        assert [next(stale).split("\n")[0] for _ in range(3)] == ["id: 3", "id: 4", "id: 5"]
        page.end()
        for last, first in ((0, "2"), (3, "3"), (4, "4")):
            said = events("".join(page.events(last)))
            assert [one["until"] for _, one in said[:-1]] == list("234"["234".index(first) :])
    finally:
        page.close()


def test_nothing_of_the_page_comes_from_elsewhere(tmp_path):
    page = LivePage(monitor([]), "127.0.0.1", 0)
    try:
        for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"),
                           ("/page.css", "text/css")):  # fmt: skip
            answer, text = ask(page, path)
            assert answer.headers["Content-Type"].startswith(kind)
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
            assert "innerHTML" not in text
        for name in ("clusters", "picture", "why", "alerts", "state", "legend", "title"):
            assert f'id="{name}"' in live_texts.HTML
        with pytest.raises(OSError, match="name another"):
            LivePage(page.watch, "127.0.0.1", int(page.address.split(":")[2][:-1]))
    finally:
        page.close()
    if node := shutil.which("node"):
        script = tmp_path / "page.js"
        script.write_text(live_texts.JS)
        subprocess.run([node, "--check", script], check=True)


@pytest.mark.exhaustive
def test_the_command_serves_until_it_is_interrupted(tmp_path):
    parts, seeds = batches()
    rows, black = tmp_path / "rows.csv", tmp_path / "black.csv"
    pd.concat(parts[8:28]).to_csv(rows, index=False)
    seeds.to_frame("vertex").to_csv(black, index=False)
    words = ["monitor", "--replay", rows, "--seeds", black, "--days", "6", "--every", "12h",
             "--port", "0", "--pause", "0", "--minimum-size", str(LIMITS["minimum_size"]),
             "--minimum-partners", str(LIMITS["minimum_partners"]), "--device", "cpu"]  # fmt: skip
    root = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-m", "glp_rapids.cli", *words], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:  # fmt: skip
        try:
            address = process.stdout.readline().split()[-1]
            connection = http.client.HTTPConnection(address.split("/")[2], timeout=60)
            connection.request("GET", "/events")
            said = events(connection.getresponse().read().decode())
            assert [name for name, _ in said] == ["tick"] * 20 + ["end"]
            assert sum(len(one["alerts"]) for _, one in said[:-1]) > 0
            while "stays until Ctrl-C" not in (line := process.stdout.readline()):
                assert line, "it ended by itself"
            process.send_signal(signal.SIGINT)  # at once: just before it waits
            assert process.wait(30) == 0
        finally:
            process.kill()  # or a failure here waits for a page that stays
