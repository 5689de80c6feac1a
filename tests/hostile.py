"""What nobody expects as single values, all calls that take them, and how a call may end."""

import datetime
import decimal
import fractions
import inspect
import math
import re

import numpy as np
import pandas as pd
import pyarrow as pa

import glp_rapids
from glp_rapids import fraud, metrics
from glp_rapids.fraud.clusters import ClusterOptions
from glp_rapids.ingest.options import EdgeOptions, EgoEdgeOptions, PathEdgeOptions
from glp_rapids.propagation.estimate import EstimateOptions
from glp_rapids.propagation.options import SweepOptions

# What a call may end in beside a result: a lack of memory is what a huge memory_limit asks for, and
# a warning, which the tests make an error, what too small a max_iter does.
CLEAR = (TypeError, ValueError, OSError, MemoryError, UserWarning)

EDGES = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1], "w": [1.0, 2.0, 0.5]})
PARTITION = pd.DataFrame({"vertex": [1, 2, 3], "partition": [0, 0, 1]})

VALUES = {
    "None": None,
    "True": True,
    "np.True_": np.True_,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "0": 0,
    "-1": -1,
    "-0.5": -0.5,
    "0.5": 0.5,
    "2.0": 2.0,
    "1e308": 1e308,
    "2**31": 2**31,
    "2**64": 2**64,
    "10**30": 10**30,
    "-10**30": -(10**30),
    "10**400": 10**400,
    "int8": np.int8(2),
    "uint64": np.uint64(2**64 - 1),
    "float16 nan": np.float16(np.nan),
    "longdouble": np.longdouble(0.5),
    "1j": 1j,
    "complex64": np.complex64(1),
    "Decimal": decimal.Decimal("0.5"),
    "Decimal sNaN": decimal.Decimal("sNaN"),
    "Fraction": fractions.Fraction(1, 2),
    "pd.NA": pd.NA,
    "pd.NaT": pd.NaT,
    "datetime64": np.datetime64("2024-01-01"),
    "timedelta": datetime.timedelta(days=1),
    "text": "text",
    "empty text": "",
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "np.str_": np.str_("text"),
    "bytes": b"text",
    "0-d": np.array(2),
    "0-d float": np.array(0.5),
    "0-d text": np.array("text"),
    "0-d object": np.array(None),
    "array": np.array([1, 2]),
    "empty array": np.array([]),
    "2-d array": np.ones((2, 2), dtype=np.int64),
    "texts": np.array(["text", "min"]),
    "masked": np.ma.masked_array([1, 2], [False, True]),
    "masked scalar": np.ma.masked,
    "structured": np.array([(1, 2)], dtype="i8,i8"),
    "void": np.void(b"abc"),
    "[]": [],
    "[1, 2]": [1, 2],
    "[[1], [1, 2]]": [[1], [1, 2]],
    "['text']": ["text"],
    "[None]": [None],
    "(1, 2, 3, 4)": (1, 2, 3, 4),
    "{}": {},
    "{1: 1}": {1: 1},
    "set": {1, 2},
    "range": range(3),
    "generator": (i for i in range(3)),
    "Series": pd.Series([1, 2]),
    "DataFrame": pd.DataFrame({"a": [1]}),
    "Index": pd.Index([1, 2]),
    "MultiIndex": pd.MultiIndex.from_tuples([(1, 2)]),
    "pa.array": pa.array([1, 2]),
    "pa.scalar": pa.scalar(1),
    "pa.table": pa.table({"a": [1]}),
    "slice": slice(3),
    "Ellipsis": ...,
    "object": object(),
    "type": int,
    "module": math,
}


LABELS = [0, 0, 1]
# Every public function that runs, with arguments that are right.
CALLS = {
    "as_graph": (glp_rapids.as_graph, {"graph": EDGES}),
    "label_propagation": (glp_rapids.label_propagation, {"graph": EDGES}),
    "propagate": (glp_rapids.propagate, {"graph": EDGES, "program": glp_rapids.Program()}),
    "layered_label_propagation": (
        glp_rapids.layered_label_propagation,
        {"graph": EDGES, "gammas": [1.0]},
    ),
    "speaker_listener": (glp_rapids.speaker_listener, {"graph": EDGES}),
    "seeded_label_propagation": (
        glp_rapids.seeded_label_propagation,
        {"graph": EDGES, "seeds": [1]},
    ),
    "compress": (glp_rapids.compress, {"graph": EDGES}),
    "estimate_memory": (glp_rapids.estimate_memory, {"graph_or_sizes": EDGES, "device": "cpu"}),
    "structural_diversity": (glp_rapids.structural_diversity, {"graph": EDGES, "k": 1}),
    "top_structural_diversity": (
        glp_rapids.top_structural_diversity,
        {"graph": EDGES, "t": 1, "k": 1},
    ),
    "ego_networks": (glp_rapids.ego_networks, {"graph": EDGES}),
    "core_number": (glp_rapids.core_number, {"graph": EDGES}),
    "k_core": (glp_rapids.k_core, {"graph": EDGES}),
    "trussness": (glp_rapids.trussness, {"graph": EDGES}),
    "k_truss": (glp_rapids.k_truss, {"graph": EDGES, "k": 3}),
    "triangle_count": (glp_rapids.triangle_count, {"graph": EDGES}),
    "bfs": (glp_rapids.bfs, {"graph": EDGES, "start": 1}),
    "sssp": (glp_rapids.sssp, {"graph": EDGES, "source": 1, "weight": "w"}),
    "shortest_paths": (
        glp_rapids.shortest_paths,
        {"result": glp_rapids.bfs(EDGES, 1, device="cpu"), "targets": [3]},
    ),
    "multi_source_bfs": (glp_rapids.multi_source_bfs, {"graph": EDGES, "sources": [1, 2]}),
    "layered_edges": (glp_rapids.layered_edges, {"graph": EDGES, "start": 1}),
    "betweenness_centrality": (glp_rapids.betweenness_centrality, {"graph": EDGES}),
    "weakly_connected_components": (glp_rapids.weakly_connected_components, {"graph": EDGES}),
    "multilevel_label_propagation": (glp_rapids.multilevel_label_propagation, {"graph": EDGES}),
    "louvain": (glp_rapids.louvain, {"graph": EDGES}),
    "leiden": (glp_rapids.leiden, {"graph": EDGES}),
    "contract": (glp_rapids.contract, {"graph": EDGES, "partition": PARTITION}),
    "cpm": (glp_rapids.cpm, {"graph": EDGES, "partition": PARTITION}),
    "modularity": (glp_rapids.modularity, {"graph": EDGES, "partition": PARTITION}),
    "coverage": (glp_rapids.coverage, {"graph": EDGES, "partition": PARTITION}),
    "nmi": (glp_rapids.nmi, {"a": LABELS, "b": LABELS}),
    "ari": (glp_rapids.ari, {"a": LABELS, "b": LABELS}),
    "cover_f1": (metrics.cover_f1, {"a": PARTITION, "b": PARTITION}),
    "account_scores": (fraud.account_scores, {"graph": EDGES, "seeds": [1]}),
    "find_clusters": (fraud.find_clusters, {"graph": EDGES, "seeds": [1]}),
    "evaluate": (
        fraud.evaluate,
        {
            "scores": pd.DataFrame({"vertex": [1, 2, 3], "score": [0.5, 0.2, 0.1]}),
            "truth": pd.DataFrame({"vertex": [1, 2], "fraud": [True, False]}),
            "k": 2,
            "amounts": pd.DataFrame({"vertex": [1, 2], "amount": [5.0, 1.0]}),
        },
    ),
    "explain": (
        fraud.explain,
        {
            "graph": EDGES,
            "scores": pd.DataFrame(
                {"vertex": [1, 2, 3], "score": [1.0, 0.4, 0.4], "is_seed": [True, False, False]}
            ),
            "vertex": 3,
            "damping": 0.85,
        },
    ),
    "features": (fraud.features, {"graph": EDGES, "labels": [1, 2, 3], "folds": 2}),
    "suspicious_clusters": (fraud.suspicious_clusters, {"graph": EDGES, "seeds": [1]}),
    "cluster_members": (fraud.cluster_members, {"graph": EDGES, "seeds": [1]}),
    "Graph.to": (glp_rapids.Graph.to, {"device": "cpu"}),
    "Graph.rows": (glp_rapids.Graph.rows, {"direction": "in"}),
    "Graph.readers": (glp_rapids.Graph.readers, {"direction": "in"}),
    "Graph.vertex_index": (glp_rapids.Graph.vertex_index, {"ids": [1]}),
    "CompressedGraph.open": (glp_rapids.CompressedGraph.open, {"path": "nowhere.glp"}),
    "read_webgraph": (glp_rapids.read_webgraph, {"path": "nowhere.graph"}),
}
UNPACKED = {
    "EdgeOptions": EdgeOptions,
    "EgoEdgeOptions": EgoEdgeOptions,
    "PathEdgeOptions": PathEdgeOptions,
    "SweepOptions": SweepOptions,
    "ClusterOptions": ClusterOptions,
    "EstimateOptions": EstimateOptions,
}


def arguments(function):
    """List the names of all arguments, those of **options included."""
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
            names += UNPACKED[unpacked[1] if unpacked else "EdgeOptions"].__annotations__
        elif name != "self":
            names.append(name)
    return list(dict.fromkeys(names))


def defect(call, *words):
    """Say what is wrong about how a call ends, or None: a result, or an error that names a word."""
    try:
        call()
    except CLEAR as error:
        text = str(error)
        if any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words):
            return None
        return f"{type(error).__name__} without {' or '.join(words)}: {text:.150}"
    except Exception as error:
        return f"{type(error).__name__}: {error!s:.150}"
    return None
