"""Label propagation for RAPIDS: fast, exact and deterministic, on GPUs and on CPUs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from glp_rapids.common import forking as _forking  # noqa: F401

__version__ = "0.1.0"

# Where each public name lives; a name is imported when it is first used, so that importing the
# library loads neither pandas nor Numba, and of course no GPU library.
_HOMES = {
    "Graph": "graph.graph",
    "as_graph": "ingest.read",
    "read_webgraph": "ingest.webgraph.read",
    "compress": "compression",
    "CompressedGraph": "compressed.graph",
    "Program": "propagation.program",
    "propagate": "propagation.variants.classic",
    "label_propagation": "propagation.variants.classic",
    "layered_label_propagation": "propagation.variants.layered",
    "speaker_listener": "propagation.variants.speaker_listener",
    "seeded_label_propagation": "propagation.variants.seeded",
    "estimate_memory": "propagation.estimate",
    "random_below": "common.hashing",
    "multilevel_label_propagation": "communities.multilevel",
    "louvain": "communities.aliases",
    "leiden": "communities.aliases",
    "contract": "communities.contraction",
    "structural_diversity": "diversity.search",
    "top_structural_diversity": "diversity.search",
    "ego_networks": "diversity.ego",
    "core_number": "cohesion.core",
    "k_core": "cohesion.core",
    "trussness": "cohesion.truss",
    "k_truss": "cohesion.truss",
    "triangle_count": "cohesion.triangles",
    "bfs": "traversal.bfs",
    "sssp": "traversal.sssp",
    "shortest_paths": "traversal.paths",
    "multi_source_bfs": "traversal.multi_source",
    "layered_edges": "traversal.layers",
    "betweenness_centrality": "traversal.betweenness",
    "weakly_connected_components": "traversal.components",
    "modularity": "metrics",
    "coverage": "metrics",
    "cpm": "metrics",
    "nmi": "metrics",
    "ari": "metrics",
    "SlidingWindow": "fraud",
    "suspicious_clusters": "fraud",
    "find_clusters": "fraud",
    "cluster_members": "fraud",
    "account_scores": "fraud",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from glp_rapids.cohesion.core import core_number as core_number
    from glp_rapids.cohesion.core import k_core as k_core
    from glp_rapids.cohesion.triangles import triangle_count as triangle_count
    from glp_rapids.cohesion.truss import k_truss as k_truss
    from glp_rapids.cohesion.truss import trussness as trussness
    from glp_rapids.common.hashing import random_below as random_below
    from glp_rapids.communities.aliases import leiden as leiden
    from glp_rapids.communities.aliases import louvain as louvain
    from glp_rapids.communities.contraction import contract as contract
    from glp_rapids.communities.multilevel import (
        multilevel_label_propagation as multilevel_label_propagation,
    )
    from glp_rapids.compressed.graph import CompressedGraph as CompressedGraph
    from glp_rapids.compression import compress as compress
    from glp_rapids.diversity.ego import ego_networks as ego_networks
    from glp_rapids.diversity.search import structural_diversity as structural_diversity
    from glp_rapids.diversity.search import top_structural_diversity as top_structural_diversity
    from glp_rapids.fraud import SlidingWindow as SlidingWindow
    from glp_rapids.fraud import account_scores as account_scores
    from glp_rapids.fraud import cluster_members as cluster_members
    from glp_rapids.fraud import find_clusters as find_clusters
    from glp_rapids.fraud import suspicious_clusters as suspicious_clusters
    from glp_rapids.graph.graph import Graph as Graph
    from glp_rapids.ingest.read import as_graph as as_graph
    from glp_rapids.ingest.webgraph.read import read_webgraph as read_webgraph
    from glp_rapids.metrics import ari as ari
    from glp_rapids.metrics import coverage as coverage
    from glp_rapids.metrics import cpm as cpm
    from glp_rapids.metrics import modularity as modularity
    from glp_rapids.metrics import nmi as nmi
    from glp_rapids.propagation.estimate import estimate_memory as estimate_memory
    from glp_rapids.propagation.program import Program as Program
    from glp_rapids.propagation.variants.classic import label_propagation as label_propagation
    from glp_rapids.propagation.variants.classic import propagate as propagate
    from glp_rapids.propagation.variants.layered import (
        layered_label_propagation as layered_label_propagation,
    )
    from glp_rapids.propagation.variants.seeded import (
        seeded_label_propagation as seeded_label_propagation,
    )
    from glp_rapids.propagation.variants.speaker_listener import (
        speaker_listener as speaker_listener,
    )
    from glp_rapids.traversal.betweenness import (
        betweenness_centrality as betweenness_centrality,
    )
    from glp_rapids.traversal.bfs import bfs as bfs
    from glp_rapids.traversal.components import (
        weakly_connected_components as weakly_connected_components,
    )
    from glp_rapids.traversal.layers import layered_edges as layered_edges
    from glp_rapids.traversal.multi_source import multi_source_bfs as multi_source_bfs
    from glp_rapids.traversal.paths import shortest_paths as shortest_paths
    from glp_rapids.traversal.sssp import sssp as sssp


_MODULES = ("datasets", "fraud", "metrics", "plot")  # that need no import of their own


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
