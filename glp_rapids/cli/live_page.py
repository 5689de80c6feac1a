"""A page with the alerts of a monitor as they come, a picture of each cluster, and its reasons.

The standard library's server, for a browser on this machine unless told otherwise; alerts go out as
server-sent events. It only answers; nothing can be changed by it. A request that names another host
than the page's is refused, so that no other page can read it by way of a name that leads here.
"""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from glp_rapids.cli import live_texts
from glp_rapids.device import to_host
from glp_rapids.graph.subgraph import induced

if TYPE_CHECKING:
    import pandas as pd

    from glp_rapids.fraud import Monitor, Tick

FILES = {
    "/": ("text/html", live_texts.HTML),
    "/page.css": ("text/css", live_texts.CSS),
    "/page.js": ("text/javascript", live_texts.JS),
}
SAFE = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
PATHS = 3  # of an explanation
KEPT = 500  # ticks that a browser which comes late is told; it shows no more alerts either
BEAT = 10.0  # seconds of silence after which a comment shows whether somebody still listens


class LivePage:
    """A page for a monitor, served by threads of their own until it is closed.

    ``port`` 0: any that is free. ``address``: where it is.
    """

    def __init__(self, watch: Monitor, host: str, port: int) -> None:
        self.watch, self._shown, self._ended = watch, 0, False
        self._texts: deque[str] = deque(maxlen=KEPT)
        self._came = threading.Condition()
        self._members: pd.DataFrame | None = None
        page = self

        class Handler(_Handler):
            live = page

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        try:
            self._server = Server((host, port), Handler)
        except OSError as error:
            raise OSError(
                error.errno, f"--port {port}: {error.strerror}; name another, or 0 for any", host
            ) from None
        port = self._server.server_address[1]
        self.address = f"http://{host}:{port}/"
        self.local = host in ("127.0.0.1", "localhost")
        names = {host, "127.0.0.1", "localhost"}
        self.names = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def show(self, tick: Tick, until: str) -> None:
        """Send out a tick."""
        text = json.dumps(
            {
                "number": tick.number, "until": until, "rows": tick.change.added,
                "alerts": _records(tick.alerts), "clusters": _records(tick.clusters),
            }
        )  # fmt: skip
        with self._came:
            self._members = _on_host(tick.members)
            self._texts.append(text)
            self._shown += 1
            self._came.notify_all()

    def end(self) -> None:
        """Tell that no tick will come any more."""
        with self._came:
            self._ended = True
            self._came.notify_all()

    def close(self) -> None:
        """Stop serving."""
        self.end()
        self._server.shutdown()
        self._server.server_close()

    def events(self, sent: int) -> Any:
        """Yield the events after so many, as they come, and now and then nothing."""
        while True:
            with self._came:
                if sent > self._shown:  # it was told by a page before this one
                    sent = 0
                if sent == self._shown and not self._ended:
                    self._came.wait(BEAT)
                gone = self._shown - len(self._texts)
                sent, ended = max(sent, gone), self._ended
                texts = list(islice(self._texts, sent - gone, None))
            for text in texts:
                sent += 1
                yield f"id: {sent}\nevent: tick\ndata: {text}\n\n"
            if ended:
                yield "event: end\ndata: {}\n\n"
                return
            if not texts:
                yield ": nothing new\n\n"

    def cluster(self, name: str) -> dict[str, Any]:
        """Return the members of a cluster and what they trade with one another."""
        members = self._members_of(name)
        graph = self.watch.window.graph()
        ids = members[_ids(members)]
        asked = ids.iloc[:, 0] if ids.shape[1] == 1 else ids
        index = graph.vertices.lookup(asked, "members", absent=True)
        here = to_host(index) >= 0  # the monitor may be a tick ahead
        members = members[here].reset_index(drop=True)
        order = to_host(index)[here].argsort()
        inner = induced(graph.to("cpu"), to_host(index)[here][order])
        rows, columns = (order[to_host(one)] for one in (inner.row_indices(), inner.indices))
        edges = zip(rows.tolist(), columns.tolist(), inner.weights.tolist(), strict=True)
        return {
            "members": [
                {"vertex": _text(row[: ids.shape[1]]), "score": row[-2], "is_seed": bool(row[-1])}
                for row in members[[*_ids(members), "score", "is_seed"]].itertuples(index=False)
            ],
            "edges": [edge for edge in edges if edge[0] < edge[1]],
        }

    def explain(self, name: str, member: int) -> dict[str, Any]:
        """Return the strongest paths from a member to the blacklist, as texts."""
        members = self._members_of(name)
        ids = members[_ids(members)]
        if not 0 <= member < len(ids):
            raise LookupError(f"cluster {name} has {len(ids)} members")
        vertex = tuple(ids.iloc[member])
        found = _on_host(self.watch.explain(vertex[0] if len(vertex) == 1 else vertex, PATHS))
        source, destination = ([one for one in found if str(one).endswith(end)]
                               for end in ("source", "destination"))  # fmt: skip
        paths = []
        for _, path in found.groupby("path"):
            text = _text(path[source].iloc[0])
            for i in range(len(path)):
                row = path.iloc[i]
                text += f" - {row['amount']:,.2f} - {_text(row[destination])}"
            paths.append(f"{text} (adds {path['contribution'].iloc[0]:.3f})")
        return {"paths": paths}

    def _members_of(self, name: str) -> pd.DataFrame:
        with self._came:
            members = self._members
        if members is not None:
            members = members[members["cluster_id"] == name]
        if members is None or members.empty:
            raise LookupError(f"there is no cluster {name} any more")
        return members


class _Handler(BaseHTTPRequestHandler):
    live: LivePage

    def do_GET(self) -> None:
        try:
            self._reply()
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the reader has gone

    def _reply(self) -> None:
        if self.live.local and self.headers.get("Host", "") not in self.live.names:
            self._answer(403, "application/json", json.dumps({"error": "not by this name"}))
            return
        asked = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        if asked.path in FILES:
            self._answer(200, *FILES[asked.path])
        elif asked.path == "/events":
            self._stream()
        elif asked.path in ("/cluster", "/explain"):
            try:
                if asked.path == "/cluster":
                    found = self.live.cluster(query.get("id", ""))
                else:
                    found = self.live.explain(query.get("id", ""), int(query.get("member", -1)))
                self._answer(200, "application/json", json.dumps(found))
            except (LookupError, ValueError) as error:
                # of a LookupError the text without quotes
                text = json.dumps({"error": str(error.args[0] if error.args else error)})
                self._answer(404, "application/json", text)
        else:
            self._answer(404, "application/json", json.dumps({"error": "there is no such page"}))

    def _stream(self) -> None:
        last = self.headers.get("Last-Event-ID", "0")[:18]
        self._head(200, "text/event-stream")
        for text in self.live.events(int(last) if last.isdecimal() else 0):
            self.wfile.write(text.encode())
            self.wfile.flush()

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self._head(code, kind, len(body))
        self.wfile.write(body)

    def _head(self, code: int, kind: str, length: int | None = None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        for name, value in SAFE.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal shows the alerts."""


def _records(frame: Any) -> list[dict[str, Any]]:
    """Return rows as JSON has them, which knows no NaN."""
    frame = _on_host(frame)
    columns = {name: frame[name].tolist() for name in frame.columns}
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str) else list(value)


def _ids(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if name == "vertex" or str(name).endswith("_vertex")]


def _text(ids: Any) -> str:
    return ", ".join(map(str, ids))


def _on_host(frame: Any) -> pd.DataFrame:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame
