"""Overlapping communities and resolution: SLPA on planted covers, LLP gamma by gamma.

A planted cover puts every vertex in one community, some in two, and joins the vertices that share
one with a probability; a little noise joins any two. SLPA's cover is compared with the planted one
by the average F1 of best matches (Yang and Leskovec 2013); a random cover with the same sizes of
communities and the same number of memberships is compared too, and shows what chance gives.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.frames.kinds import to_series
from glp_rapids.ingest.read import as_graph
from glp_rapids.metrics import cover_f1

OVERLAPS = (0.0, 0.1, 0.3, 0.5)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    parser.add_argument("--vertices", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=40, help="of a community (default 40)")
    parser.add_argument("--overlap", nargs="+", type=float, default=OVERLAPS, metavar="SHARE",
                        help="share of the vertices in two communities")  # fmt: skip
    parser.add_argument("--graph", default="com-dblp", help="for LLP (default com-dblp)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "gpu"), default=None)


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a share of overlap, and one with a row a gamma."""
    subjects.processors(options.threads)
    return {
        "SLPA on planted overlapping communities, average F1": _slpa(options),
        f"LLP on {options.graph}": _layered(options),
    }


def planted_cover(
    vertices: int, size: int, overlap: float, *, inside: float = 0.3, noise: float = 2.0,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:  # fmt: skip
    """Plant communities of about ``size`` members; a share of the vertices is in a second one.

    ``inside``: probability that two members of a community are joined. ``noise``: mean number of
    edges of a vertex that lead anywhere. Returns the edges, ``src, dst``, and the cover,
    ``vertex, partition``, a row a membership. The affiliation graph model: Yang and Leskovec,
    "Community-affiliation graph model for overlapping network community detection", ICDM 2012,
    section 3.
    """
    rng = np.random.default_rng(seed)
    second = rng.permutation(vertices)[: round(overlap * vertices)]
    members = np.concatenate([rng.permutation(vertices), second])
    cover = pd.DataFrame({"vertex": members, "partition": np.arange(members.size) // size})
    pairs = cover.merge(cover, on="partition", suffixes=("_a", "_b"))
    pairs = pairs[pairs["vertex_a"] < pairs["vertex_b"]]
    joined = pairs[rng.random(len(pairs)) < inside]
    anywhere = rng.integers(0, vertices, (round(vertices * noise / 2), 2))
    ends = np.concatenate([joined[["vertex_a", "vertex_b"]].to_numpy(), anywhere])
    return pd.DataFrame(ends, columns=["src", "dst"]), cover


def random_cover(cover: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Deal the memberships of a cover out anew: same sizes, same memberships of a vertex."""
    dealt = np.random.default_rng(seed).permutation(cover["partition"].to_numpy())
    return cover.assign(partition=dealt)


def _slpa(options: argparse.Namespace) -> Rows:
    from glp_rapids import speaker_listener

    rows = []
    for overlap in options.overlap:
        edges, planted = planted_cover(options.vertices, options.size, overlap)
        graph = as_graph(edges, vertices=np.arange(options.vertices), device=options.device)
        speaker_listener(graph, max_iter=1, device=options.device)  # compiles
        found = speaker_listener(graph, device=options.device)
        rows.append({"in two communities": overlap, "entries": graph.number_of_edges,
                     "planted": planted["partition"].nunique(),
                     "found": int(found["partition"].nunique()),
                     "memberships a vertex": len(found) / options.vertices,
                     "SLPA": cover_f1(found, planted),
                     "random cover": cover_f1(random_cover(planted), planted),
                     "seconds": found.attrs["glp"]["seconds"]})  # fmt: skip
    return rows


def _layered(options: argparse.Namespace) -> Rows:
    from glp_rapids import layered_label_propagation

    graph = subjects.load(options.graph, options.device)
    found = layered_label_propagation(graph, device=options.device)
    rows = []
    found = pd.DataFrame({name: to_series(found[name], "pandas") for name in found.columns})
    for gamma, partition in found.groupby("gamma")["partition"]:
        sizes = partition.value_counts()
        rows.append({"gamma": float(gamma), "communities": len(sizes), "largest": int(sizes.max()),
                     "mean size": float(sizes.mean())})  # fmt: skip
    return rows
