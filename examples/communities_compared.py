"""Communities compared: four kinds of LP beside Louvain and Leiden, on a graph like a web crawl.

    python examples/communities_compared.py [pages] [picture.png]

Louvain and Leiden are cuGraph's on a GPU, NetworKit's without one; if that is missing, networkx's
Louvain. Prints modularity, sizes, seconds, and how alike two runs are (1 is the same).
"""

import sys
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd

import glp_rapids
from glp_rapids.datasets import web_like
from glp_rapids.device import gpu_available

GAMMAS = (1 / 256, 1 / 64, 1 / 16, 1 / 4)

pages = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000  # on a GPU: 1_000_000
if gpu_available() and find_spec("cudf"):
    import cudf as frames
else:
    import pandas as frames


def cugraph_methods(edges):
    """Give cuGraph's Louvain and Leiden."""
    import cugraph

    G = cugraph.Graph()
    G.from_cudf_edgelist(edges, source="src", destination="dst")
    return {
        "Louvain": lambda: cugraph.louvain(G)[0],
        "Leiden": lambda: cugraph.leiden(G, random_state=0)[0],
    }


def networkit_methods(edges):
    """Give NetworKit's Louvain and Leiden."""
    import networkit

    coordinates = tuple(edges[end].to_numpy("int64") for end in ("src", "dst"))
    G = networkit.GraphFromCoo(coordinates, n=pages)

    def of(algorithm):
        partition = algorithm(G).run().getPartition().getVector()
        return pd.DataFrame({"vertex": np.arange(pages), "partition": partition})

    return {
        "Louvain": lambda: of(networkit.community.PLM),
        "Leiden": lambda: of(networkit.community.ParallelLeiden),
    }


def networkx_methods(edges):
    """Give networkx's Louvain, in Python and slow."""
    import networkx

    G = networkx.from_pandas_edgelist(edges, "src", "dst")

    def louvain():
        found = networkx.community.louvain_communities(G, seed=0)
        rows = [(vertex, number) for number, members in enumerate(found) for vertex in members]
        return pd.DataFrame(rows, columns=["vertex", "partition"])

    return {"Louvain": louvain}


if frames is not pd and find_spec("cugraph"):
    peer, make_others = "cuGraph", cugraph_methods
elif find_spec("networkit"):
    peer, make_others = "NetworKit", networkit_methods
elif find_spec("networkx"):
    peer, make_others = "networkx", networkx_methods
else:
    peer, make_others = "nobody: no other library is installed", lambda edges: {}

source, destination = web_like(pages, device="cpu" if frames is pd else "gpu")
ends = {"src": np.minimum(source, destination), "dst": np.maximum(source, destination)}
edges = frames.DataFrame(ends).drop_duplicates(ignore_index=True)
edges = edges[edges["src"] != edges["dst"]]
graph = glp_rapids.as_graph(edges)
print(f"{graph.number_of_vertices:,} pages, {len(edges):,} edges; "
      f"frames of {frames.__name__}, beside {peer}")  # fmt: skip


def layer(gamma):
    """Give layered label propagation at one resolution."""
    return lambda: glp_rapids.layered_label_propagation(graph, gammas=[gamma])


methods = {
    "LP": lambda: glp_rapids.label_propagation(graph),
    # several rows for a page in several communities, the strongest first
    "SLPA": lambda: glp_rapids.speaker_listener(graph).drop_duplicates("vertex"),
    "Multilevel": lambda: glp_rapids.multilevel_label_propagation(graph),
}
methods |= {f"LLP 1/{round(1 / gamma)}": layer(gamma) for gamma in GAMMAS}
methods |= make_others(edges if frames is pd or peer == "cuGraph" else edges.to_pandas())


def timed(method):
    """Give the seconds of the fastest of up to seven runs, and the last result."""
    seconds = []
    while len(seconds) < 7 and sum(seconds) < 1:
        begin = time.perf_counter()
        found = method()
        found["partition"].max()  # a GPU is waited for
        seconds.append(time.perf_counter() - begin)
    return min(seconds), found


rows, results = {}, {}
for name, method in methods.items():
    results[name] = method()  # compiles and loads, too
    seconds, again = timed(method)
    sizes = results[name].groupby("partition").size().to_numpy()
    rows[name] = {
        "modularity": round(glp_rapids.modularity(graph, results[name]), 4),
        "communities": len(sizes),
        "median size": int(np.median(sizes)),
        "largest": int(sizes.max()),
        "seconds": round(seconds, 4),
        "two runs": round(glp_rapids.nmi(results[name], again), 3),
    }
table = pd.DataFrame(rows.values(), index=list(rows))
print(table.to_string())


def draw(table, results, figure):
    """Draw the sizes of the communities, and modularity and seconds as bars."""
    left, middle, right = figure.subplots(1, 3, width_ratios=(2, 1, 1))
    colours = dict(zip(
        table.index,
        ("#ff4d6d", "#4cc9f0", "#b388eb", "#ffe8b0", "#ffc94d", "#f79824", "#c75b12", "#9ef01a",
         "#2ec4b6"), strict=False,
    ))  # fmt: skip
    for name, found in results.items():
        sizes = np.sort(found.groupby("partition").size().to_numpy())[::-1]
        left.step(sizes, np.arange(1, len(sizes) + 1), where="post", color=colours[name],
                  linewidth=3 if name == "LP" else 1.6, label=name)  # fmt: skip
    left.set(xscale="log", yscale="log")
    left.set(xlabel="members", ylabel="communities with at least as many")
    left.set_title("How large are they?")
    left.legend(frameon=False, labelcolor="linecolor", ncols=2)
    for axes, values, form, title in (
        (middle, table["modularity"], "{:.2f}", "Modularity"),
        (right, table["seconds"] * 1000, "{:.0f}", "Milliseconds"),
    ):
        values = values[::-1]
        bars = axes.barh(values.index, values, color=[colours[name] for name in values.index])
        axes.bar_label(bars, fmt=form, padding=5)
        axes.set_title(title)
        axes.margins(x=0.15)
        axes.tick_params(bottom=False, labelbottom=False, left=False)
    right.tick_params(labelleft=False)


if len(sys.argv) > 2:
    from matplotlib import pyplot

    pyplot.style.use("dark_background")
    figure = pyplot.figure(figsize=(14, 4.8), layout="constrained")
    draw(table, results, figure)
    figure.savefig(sys.argv[2], dpi=110)
