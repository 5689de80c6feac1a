"""Published graphs by name.

They are read from a folder of files; nothing is downloaded.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from glp_rapids.common.checks import shown


def data_folder() -> Path:
    """Return the folder of the named graphs: ``GLP_RAPIDS_DATA``, else ``../shared/data``."""
    named = os.environ.get("GLP_RAPIDS_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"


# name -> (file, has a weight column, directed)
_EDGE_FILES: dict[str, tuple[str, bool, bool]] = {
    "graphalytics-p2p-31": ("graphalytics-p2p-31.e.gz", True, False),
    "com-dblp": ("com-dblp.edges.tsv.gz", False, False),
    **{
        f"lfr-{n}-mu{mu}": (f"lfr-{n}-mu{mu}.edges.tsv.gz", False, False)
        for n in (10000, 100000)
        for mu in (0.1, 0.3, 0.5)
    },
    "email-Eu-core": ("email-Eu-core.edges.tsv", False, False),
    "facebook_combined": ("facebook_combined.txt.gz", False, False),
    "ca-CondMat": ("ca-CondMat.txt.gz", False, False),
    "email-Enron": ("email-Enron.txt.gz", False, False),
    "wiki-Vote": ("wiki-Vote.txt.gz", False, True),
    "web-NotreDame": ("web-NotreDame.txt.gz", False, True),
    "road-luxembourg": ("road-luxembourg.txt.gz", False, False),
}
_CSR_FILES = ("cnr-2000", "uk-2007-100k")
_AMLSIM = ("amlsim-20K_cycle200", "amlsim-20K_fanin200cycle200")
_GML_FILES = {"football": "football.gml", "polblogs": "polblogs.gml.gz"}

NAMES = (*_EDGE_FILES, "road-usa", *_CSR_FILES, *_GML_FILES, *_AMLSIM)


def load(name: str) -> pd.DataFrame:
    """Read a published graph of the data folder as an edge frame.

    Parameters
    ----------
    name
        One of ``glp_rapids.datasets.NAMES``.

    Returns
    -------
    pandas.DataFrame
        ``src`` and ``dst`` (int64), and ``weight`` where the graph has weights; for ``amlsim-*``
        ``source, destination, amount, time``. ``attrs["directed"]`` says how to read it, and
        ``attrs["vertices"]`` holds the number of vertices where they are 0 .. number - 1 and
        some may have no edge.

    Raises
    ------
    ValueError
        If the name is unknown.
    FileNotFoundError
        If the file is not in the data folder (``GLP_RAPIDS_DATA``, else ``../shared/data``).

    Examples
    --------
    >>> from glp_rapids.datasets import load  # doctest: +SKIP
    >>> load("com-dblp").shape  # doctest: +SKIP
    (1049866, 2)
    """
    _check_name(name)
    if name in _EDGE_FILES:
        file, weighted, directed = _EDGE_FILES[name]
        frame = _read_columns(file, ["src", "dst", "weight"] if weighted else ["src", "dst"])
    elif name == "road-usa":
        frame, directed = _read_road_usa(), False
    elif name in _CSR_FILES:
        with np.load(_path(f"{name}.csr.npz")) as arrays:
            indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"]
        number = len(indptr) - 1
        frame = pd.DataFrame(
            {"src": np.repeat(np.arange(number), np.diff(indptr)), "dst": indices.astype(np.int64)}
        )
        frame.attrs["vertices"] = number
        directed = True
    elif name in _GML_FILES:
        ends = {"source": [], "target": []}
        for key, value in _lines(_GML_FILES[name]):
            if key in ends and value.isdigit():
                ends[key].append(int(value))
        frame = pd.DataFrame({"src": ends["source"], "dst": ends["target"]}, dtype=np.int64)
        directed = name == "polblogs"
    elif name in _AMLSIM:
        frame = pd.read_csv(_path(f"{name}.transactions.csv.gz")).set_axis(
            ["source", "destination", "amount", "time"], axis=1
        )
        frame.attrs["vertices"] = len(ground_truth(name))
        directed = True
    else:
        raise ValueError(f"no data set is called {name!r}; the names are {', '.join(NAMES)}")
    frame.attrs["directed"] = directed
    return frame


def ground_truth(name: str) -> pd.DataFrame:
    """Read what is known about the vertices of a published graph.

    Parameters
    ----------
    name
        A name of `load` that has an answer: com-dblp, lfr-*, email-Eu-core, football, polblogs,
        graphalytics-p2p-31 (its CDLP labels) or amlsim-*.

    Returns
    -------
    pandas.DataFrame
        ``vertex, partition`` (several rows a vertex where communities overlap); for ``amlsim-*``
        ``vertex, fraud`` with a boolean ``fraud``.

    Raises
    ------
    ValueError
        If nothing is known about ``name``.
    FileNotFoundError
        If the file is not in the data folder.

    Examples
    --------
    >>> from glp_rapids.datasets import ground_truth  # doctest: +SKIP
    >>> int(ground_truth("amlsim-20K_cycle200")["fraud"].sum())  # doctest: +SKIP
    945
    """
    _check_name(name)
    if name == "graphalytics-p2p-31":
        return _read_columns("graphalytics-p2p-31.CDLP.gz", ["vertex", "partition"])
    if name == "email-Eu-core":
        return _read_columns("email-Eu-core.departments.tsv", ["vertex", "partition"])
    if name == "com-dblp" or name.startswith("lfr-"):
        with gzip.open(_path(f"{name}.communities.json.gz"), "rt") as file:
            communities = json.load(file)["communities"]
        sizes = [len(community) for community in communities]
        vertex = np.fromiter((v for c in communities for v in c), np.int64, sum(sizes))
        return pd.DataFrame(
            {"vertex": vertex, "partition": np.repeat(np.arange(len(sizes)), sizes)}
        )
    if name in _GML_FILES:
        found: dict[str, list[int]] = {"id": [], "value": []}
        for key, value in _lines(_GML_FILES[name]):
            if key == "edge":
                break
            if key in found:
                found[key].append(int(value))
        return pd.DataFrame({"vertex": found["id"], "partition": found["value"]})
    if name in _AMLSIM:
        nodes = pd.read_csv(_path(f"{name}.nodes.csv.gz"))
        return pd.DataFrame({"vertex": nodes["nodeid"], "fraud": nodes["isFraud"] == 1})
    raise ValueError(f"no ground truth is known for {name!r}")


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name must be a text, one of {', '.join(NAMES)}, not {shown(name)}")


def _path(file: str) -> Path:
    path = data_folder() / file
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: set the environment variable GLP_RAPIDS_DATA to the folder "
            f"that holds {file}; nothing is downloaded, and glp_rapids.datasets makes graphs, too: "
            "social, web_like, kronecker, road_grid, transactions"
        )
    return path


def _read_columns(file: str, columns: list[str]) -> pd.DataFrame:
    return pd.read_csv(
        _path(file), sep=r"\s+", comment="#", header=None, names=columns,
        usecols=range(len(columns)), dtype=dict.fromkeys(columns, np.int64),
    )  # fmt: skip


def _read_road_usa() -> pd.DataFrame:
    path = _path("road-usa.txt.gz")
    with gzip.open(path, "rt") as file:
        vertices, edges = (int(word) for word in file.readline().split())
        rest = np.array(file.read().split(), dtype=np.float64)
    place = rest[: 3 * vertices].reshape(vertices, 3)[:, 1:]
    ends = rest[3 * vertices : 3 * vertices + 2 * edges].reshape(edges, 2).astype(np.int64)
    length = np.hypot(*(place[ends[:, 0]] - place[ends[:, 1]]).T)
    frame = pd.DataFrame({"src": ends[:, 0], "dst": ends[:, 1], "weight": length})
    frame.attrs["vertices"] = vertices
    return frame


def _lines(file: str) -> Iterator[tuple[str, str]]:
    path = _path(file)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            key, _, value = line.strip().partition(" ")
            yield key, value
