"""Who has friends in many separate circles? The most diverse people of a social network.

    python examples/diverse_people.py [people] [picture.png]

The friends of a person fall into circles: groups that hold together among themselves, here with
every friendship part of two triangles or more. Prints the people with the most circles, and how
little the number of friends says about it. The picture shows the friends of two people with as many
friends each, once in one clump and once in many circles; it needs matplotlib and networkx. The
network is made up; with your own, read a frame with two columns of ids into `edges`.
"""

import sys

import pandas as pd

import glp_rapids
from glp_rapids.datasets import social
from glp_rapids.device import gpu_available, to_host

if gpu_available():
    import cudf as frames
else:
    import pandas as frames

K, MODEL = 4, "truss"
DRAWN = 30, 60  # friends of the people in the picture
LOOSE = "#59616b"  # in no circle


def on_host(frame):
    """Give a pandas frame, for what is shown and drawn."""
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def two_alike(people):
    """Find two people with as many friends: one of the most circles, and one of a single one."""
    fit = people[people["friends"].between(*DRAWN)]
    many = fit.sort_values(["circles", "friends", "vertex"], ascending=[False, True, True]).iloc[0]
    fit = fit[fit["circles"] == 1].assign(off=lambda row: (row["friends"] - many["friends"]).abs())
    one = fit.sort_values(["off", "pairs", "vertex"], ascending=[True, False, True]).iloc[0]
    return one, many


def draw(person, friends, axes):
    """Draw who of a person's friends know each other; every circle has a colour."""
    import networkx
    from matplotlib import colormaps

    ego = networkx.from_pandas_edgelist(friends, "src", "dst")
    ego.add_nodes_from(range(-int(person["friends"] - len(ego)), 0))  # who knows no other friend
    # networkx finds the same circles
    circles = list(networkx.connected_components(networkx.k_truss(ego, K)))
    assert len(circles) == person["circles"]
    colour = dict.fromkeys(ego, LOOSE)
    for number, members in enumerate(sorted(circles, key=len, reverse=True)):
        colour |= dict.fromkeys(members, colormaps["tab10"](number % 10))
    steps = dict(networkx.shortest_path_length(ego))
    apart = {a: {b: min(steps[a].get(b, 3), 3) for b in ego} for a in ego}
    place = networkx.kamada_kawai_layout(ego, dist=apart)
    lines = [colour[a] if colour[a] == colour[b] else LOOSE for a, b in ego.edges]
    networkx.draw_networkx_edges(ego, place, ax=axes, edge_color=lines, width=0.6, alpha=0.6)
    dots = [colour[a] for a in ego]
    networkx.draw_networkx_nodes(ego, place, ax=axes, node_color=dots, node_size=60)
    axes.set_title(f"{person['friends']} friends, circles: {len(circles)}")
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")


people = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000  # on a GPU: 4_000_000
source, destination = social(people, device="cpu" if frames is pd else "gpu")
edges = frames.DataFrame({"src": source, "dst": destination})
graph = glp_rapids.as_graph(edges[edges["src"] != edges["dst"]])
print(f"{people:,} people, {graph.number_of_edges // 2:,} friendships; frames of {frames.__name__}")

best, circles = glp_rapids.top_structural_diversity(graph, 10, K, MODEL)
report = best.attrs["glp"]
print(f"the ten with the most circles: {report['evaluated']:,} people looked at, "
      f"{report['pruned']:,} passed over in {report['seconds']:.2f} s")  # fmt: skip
sizes = on_host(circles).groupby(["vertex", "context"]).size()
shown = on_host(best)
shown["sizes of the circles"] = [
    " ".join(map(str, sizes[person].sort_values(ascending=False))) for person in shown["vertex"]
]
print(shown.to_string(index=False))

# everybody, under the three ideas of a circle
everyone = on_host(glp_rapids.triangle_count(graph)).rename(columns={"counts": "pairs"})
everyone["friends"] = to_host(graph.degree)
for model in ("component", "core", "truss"):
    found = on_host(glp_rapids.structural_diversity(graph, K, model))
    everyone[model] = found["score"]  # both in the order of the vertices
print("\nmean number of circles, by number of friends")
groups = pd.cut(everyone["friends"], [0, 10, 20, 40, 80, 160, people])
table = everyone.groupby(groups, observed=True)[["component", "core", "truss"]].mean()
table.insert(0, "people", everyone.groupby(groups, observed=True).size())
print(table.round(2).to_string())

one, many = two_alike(everyone.rename(columns={MODEL: "circles"}))
for person in (one, many):
    print(f"person {person['vertex']}: {person['friends']} friends, {person['pairs']} pairs of "
          f"them are friends, circles: {person['circles']}")  # fmt: skip

if len(sys.argv) > 2:
    from matplotlib import pyplot

    egos = on_host(glp_rapids.ego_networks(graph, [one["vertex"], many["vertex"]]))
    pyplot.style.use("dark_background")
    figure = pyplot.figure(figsize=(13, 6.4), layout="constrained")
    for person, axes in zip((one, many), figure.subplots(1, 2), strict=True):
        draw(person, egos[egos["ego"] == person["vertex"]], axes)
    figure.savefig(sys.argv[2], dpi=110)
