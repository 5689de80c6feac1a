"""One chain: core numbers, the subgraph of the core, label propagation, Louvain on what that left.

    python examples/chaining.py [pages] [picture.png]

On a GPU with cuGraph, all but label propagation is cuGraph's; else networkx stands in. Frames with
a column `vertex` join the steps. Prints what Louvain gains from label propagation before it.
"""

import sys
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd

import glp_rapids
from glp_rapids.datasets import web_like
from glp_rapids.device import gpu_available

LEAST_CORE = 6

ON_GPU = bool(gpu_available() and find_spec("cudf") and find_spec("cugraph"))
if ON_GPU:
    import cudf as frames
    import cugraph

    def make_graph(edges):
        """Build a cuGraph; a loop counts once in a degree there, and twice in networkx."""
        loop = (edges["src"] == edges["dst"]).astype("float64")
        edges = edges.assign(weight=edges["weight"] * (1 + loop))
        G = cugraph.Graph()
        G.from_cudf_edgelist(edges, source="src", destination="dst", edge_attr="weight")
        return G

    def core_numbers(G):
        return cugraph.core_number(G)

    def subgraph(G, vertices):
        return cugraph.induced_subgraph(G, vertices)[0]

    def louvain(G):
        return cugraph.louvain(G)[0]
else:
    import networkx
    import pandas as frames

    def make_graph(edges):
        return networkx.from_pandas_edgelist(edges, "src", "dst", "weight")

    def core_numbers(G):
        rows = networkx.core_number(G).items()
        return pd.DataFrame(rows, columns=["vertex", "core_number"])

    def subgraph(G, vertices):
        return G.subgraph(vertices).copy()

    def louvain(G):
        found = networkx.community.louvain_communities(G, seed=0)
        rows = [(vertex, number) for number, members in enumerate(found) for vertex in members]
        return pd.DataFrame(rows, columns=["vertex", "partition"])


def crawl(pages):
    """Make a graph like a web crawl; ids are dealt out at random, so their order tells nothing."""
    source, destination = web_like(pages, device="cpu")
    name = np.random.default_rng(0).permutation(pages).astype("int32")
    ends = np.sort([name[source], name[destination]], axis=0)
    edges = frames.DataFrame({"src": ends[0], "dst": ends[1]}).drop_duplicates(ignore_index=True)
    edges = edges[edges["src"] != edges["dst"]]
    edges["weight"] = 1.0
    return edges


def between_communities(edges, found):
    """Add up the edges between communities; what is inside one becomes a loop."""
    for end in ("src", "dst"):
        named = found.rename(columns={"vertex": end, "partition": f"{end}_community"})
        edges = edges.merge(named, on=end)
    ends = edges[["src_community", "dst_community"]]
    edges = frames.DataFrame(
        {"src": ends.min(axis=1), "dst": ends.max(axis=1), "weight": edges["weight"]}
    )
    return edges.groupby(["src", "dst"])["weight"].sum().reset_index()


def propagated(H):
    """Run label propagation on the graph as it is."""
    return glp_rapids.label_propagation(H)


def finished(H, inside):
    """Run label propagation, Louvain on the communities, and take its groups to the pages."""
    found = propagated(H)
    groups = louvain(make_graph(between_communities(inside, found)))
    groups = groups.rename(columns={"vertex": "partition", "partition": "group"})
    return found.merge(groups, on="partition")


def timed(run, *arguments):
    """Give the seconds of a second run, and its result."""
    run(*arguments)
    begin = time.perf_counter()
    result = run(*arguments)
    return time.perf_counter() - begin, result


pages = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000  # on a GPU: 1_000_000
edges = crawl(pages)
G = make_graph(edges)
print(f"{pages:,} pages, {len(edges):,} edges; frames of {frames.__name__}, "
      f"graphs of {'cugraph' if ON_GPU else 'networkx'}")  # fmt: skip

core = core_numbers(G)
kept = core.loc[core["core_number"] >= LEAST_CORE, "vertex"]
H = subgraph(G, kept)
inside = edges[edges["src"].isin(kept) & edges["dst"].isin(kept)]
assert glp_rapids.as_graph(H).number_of_edges == 2 * len(inside)  # each in both directions
print(f"{LEAST_CORE}-core: {len(kept):,} pages, {len(inside):,} edges")

seconds, found = timed(propagated, H)
rows = {"label propagation": (found, seconds)}
seconds, joined = timed(finished, H, inside)
groups = joined[["vertex", "group"]].rename(columns={"group": "partition"})
rows["and Louvain on that"] = (groups, seconds)
seconds, alone = timed(louvain, H)
rows["Louvain alone"] = (alone, seconds)
table = pd.DataFrame(
    [
        {"modularity": round(glp_rapids.modularity(H, partition), 4),
         "groups": int(partition["partition"].nunique()), "seconds": round(seconds, 3)}
        for partition, seconds in rows.values()
    ],
    index=list(rows),
)  # fmt: skip
print(table.to_string())

if ON_GPU:
    theirs = cugraph.analyzeClustering_modularity(
        H, int(found["partition"].nunique()), found, "vertex", "partition"
    )
else:
    members = found.groupby("partition")["vertex"].agg(list)
    theirs = networkx.community.modularity(H, members, weight="weight")
ours = glp_rapids.modularity(H, found)
assert abs(ours - theirs) < 1e-5
print(f"modularity by glp_rapids {ours:.6f}, by {'cuGraph' if ON_GPU else 'networkx'} {theirs:.6f}")

# the community with the most pages, cut out: has it the same cores without the rest?
sizes = found.groupby("partition").size()
largest = int(sizes[sizes == sizes.max()].index.min())
members = found.loc[found["partition"] == largest, "vertex"]
apart = core_numbers(subgraph(H, members)).merge(core, on="vertex", suffixes=("_alone", ""))
same = float((apart["core_number_alone"] == apart["core_number"]).mean())
print(f"largest community: {len(apart)} pages, {same:.0%} with the core number of the whole crawl")


def draw(order, edges, figure):
    """Draw the core as a matrix, by id and by group: a dot is an edge."""
    from matplotlib.colors import LogNorm

    order["size"] = order.groupby("group")["vertex"].transform("size")
    by = ["size", "group", "partition", "vertex"]
    order = order.sort_values(by, ascending=[False, True, True, True])
    place = np.arange(len(order))
    panels = {
        "by id": pd.Series(place, np.sort(order["vertex"])),
        "by group, then community": pd.Series(place, order["vertex"]),
    }
    figure.set_facecolor("black")
    for axes, (title, place) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        x, y = place[edges["src"]], place[edges["dst"]]
        counts, *_ = np.histogram2d(np.r_[x, y], np.r_[y, x], bins=320)
        axes.imshow(np.maximum(counts, 0.4), norm=LogNorm(0.4, 400), cmap="inferno")
        axes.set_title(title, color="white", loc="left")
        axes.set_axis_off()


if len(sys.argv) > 2:
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(12, 6), layout="constrained")
    shown = (frame.to_pandas() if ON_GPU else frame for frame in (joined, inside))
    draw(*shown, figure)
    figure.savefig(sys.argv[2], dpi=110)
