"""Pictures: a cluster, in the neighbourhood it hides in, and why an account has its score."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import check_integer, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_cluster", "draw_paths"]

INK, FAINT, SEED = "#22313f", "#b9c4cd", "#d7263d"
RING_RADIUS, FAR = 1.45, 0.16
LAYOUT_STEPS = 300


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need Matplotlib: pip install matplotlib") from error
    return pyplot


def draw_cluster(
    edges: pd.DataFrame,
    members: pd.DataFrame,
    cluster: int = 0,
    *,
    neighbours: int = 120,
    sellers: Any = (),
    axes: Axes | None = None,
) -> Axes:
    """Draw a suspicious cluster with the vertices around it.

    Parameters
    ----------
    edges : pandas.DataFrame
        What `SlidingWindow.edges` returns: two columns of ids, then ``transfers``.
    members : pandas.DataFrame
        What `cluster_members` returns: ``vertex``, ``cluster``, ``score``, ``is_seed``; or the
        members of a tick of a `Monitor`, with ``cluster_id``.
    cluster
        Which cluster of ``members``.
    neighbours
        Neighbours outside the cluster to draw at the most: those with most transfers into it.
    sellers : collection of ids, optional
        Vertices to draw as squares: merchants, say.
    axes : matplotlib axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Seeds are red, other members darker the higher their score, neighbours small and grey. A
        line is as thick as there are transfers between its ends.

    Raises
    ------
    ValueError
        The cluster has no members, or a column is missing.
    ImportError
        matplotlib is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.plot import draw_cluster  # doctest: +SKIP
    >>> draw_cluster(window.edges(), members, 0)  # doctest: +SKIP
    """
    pyplot = _pyplot()

    if not hasattr(members, "columns"):
        raise TypeError(f"members must be a frame, not {type(members).__name__}")
    if "vertex" not in members:
        raise ValueError(
            "members has no column 'vertex'; ids of several columns are not drawn, so join them to "
            "one column in members and in edges"
        )
    named = next((name for name in ("cluster", "cluster_id") if name in members), None)
    if named is None:
        raise ValueError(
            "members has no column 'cluster', or 'cluster_id' as in a tick of a monitor; there are "
            f"{list(map(str, members.columns))}"
        )
    if not hasattr(edges, "columns"):
        raise TypeError(
            f"edges must be a frame, as of SlidingWindow.edges(), not {type(edges).__name__}"
        )
    if "transfers" not in edges:
        raise ValueError(
            f"edges has no column 'transfers'; there are {list(map(str, edges.columns))}: pass "
            "what SlidingWindow.edges() returns, a row for all transfers between two accounts"
        )
    _check_columns(members, ("score", "is_seed"), "members")
    check_integer("neighbours", neighbours, 0)
    if isinstance(sellers, str | bytes) or not isinstance(sellers, Iterable):
        raise TypeError(f"sellers must be a list, set or Series of ids, not {shown(sellers)}")
    inside = members[members[named] == cluster].reset_index(drop=True)
    if inside.empty:
        raise ValueError(f"cluster {cluster} has no members")
    if inside["vertex"].duplicated().any():
        again = inside["vertex"][inside["vertex"].duplicated()].tolist()[0]
        raise ValueError(f"members has several rows for {again!r} in cluster {cluster}")
    source, destination = edges.columns[:2]
    place = pd.Series(inside.index, index=inside["vertex"])
    ends = np.column_stack(
        [edges[end].map(place).fillna(-1).to_numpy(np.int64) for end in (source, destination)]
    )
    inner = (ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])
    outer = (ends >= 0).sum(axis=1) == 1
    transfers = edges["transfers"].to_numpy(np.float64)
    at = _layout(len(inside), ends[inner], transfers[inner])

    if axes is None:
        _, axes = pyplot.subplots(figsize=(7, 7), layout="constrained")
    outsiders = edges[source].where(ends[:, 0] < 0, edges[destination])[outer]
    _draw_outside(axes, at, ends[outer].max(axis=1), outsiders, transfers[outer], neighbours,
                  sellers)  # fmt: skip
    _draw_lines(axes, at[ends[inner]], transfers[inner], INK, 0.55)
    _draw_members(axes, at, inside, sellers)
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def draw_paths(paths: pd.DataFrame, *, axes: Axes | None = None) -> Axes:
    """Draw the strongest paths from an account to the blacklist: the reasons for its score.

    Parameters
    ----------
    paths : pandas.DataFrame
        What `explain`, or `Monitor.explain`, returns.
    axes : matplotlib axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The account is on the left; a row is a path, the strongest at the top. Accounts of the
        blacklist are red, with what each path that ends there adds to the score. A line is as thick
        as there are transfers between its ends; on it are their number and what they are worth. Who
        is on several paths is drawn once, where the strongest passes.

    Raises
    ------
    ValueError
        There are no paths, or ids have several columns.
    ImportError
        matplotlib is missing.

    Examples
    --------
    >>> from glp_rapids.plot import draw_paths  # doctest: +SKIP
    >>> draw_paths(watch.explain("ann"))  # doctest: +SKIP
    """
    pyplot = _pyplot()

    if not hasattr(paths, "columns"):
        raise TypeError(f"paths must be a frame, as of explain, not {type(paths).__name__}")
    if hasattr(paths, "to_pandas"):
        paths = paths.to_pandas()
    if "source" not in paths:
        raise ValueError("paths has no column 'source'; ids of several columns are not drawn")
    if paths.empty:
        raise ValueError("there are no paths: the account is a seed itself, or its score is 0")
    _check_columns(
        paths, ("path", "step", "destination", "transfers", "amount", "contribution"), "paths"
    )
    ends = paths.groupby("path").tail(1)
    at = _along(paths)
    if axes is None:
        size = 2.2 * paths["step"].max() + 5, 0.8 * len(ends) + 1
        _, axes = pyplot.subplots(figsize=size, layout="constrained")
    pairs = [frozenset(pair) for pair in zip(paths["source"], paths["destination"], strict=True)]
    lines = paths[~pd.Series(pairs, paths.index).duplicated()]  # whichever way a path goes
    places = [[at[id_] for id_ in lines[end]] for end in ("source", "destination")]
    segments = np.array(places, dtype=float).transpose(1, 0, 2)
    _draw_lines(axes, segments, lines["transfers"].to_numpy(np.float64), INK, 0.55)
    for (x, y), transfers, amount in zip(
        segments.mean(axis=1), lines["transfers"], lines["amount"], strict=True
    ):
        # without a window both are the weight of the edge
        said = f"{transfers:,.12g}" + (f" for {amount:,.12g}" if amount != transfers else "")
        axes.annotate(said, (x, y), (0, 0), fontsize=8, ha="center", va="center", color=INK,
                      textcoords="offset points", zorder=4,
                      bbox={"facecolor": "white", "linewidth": 0, "pad": 1.5})  # fmt: skip
    seeds = set(ends["destination"])
    for id_, place in at.items():
        axes.scatter(*place, s=150, zorder=3, edgecolors=INK, linewidths=1.1,
                     color=SEED if id_ in seeds else FAINT)  # fmt: skip
        axes.annotate(str(id_), place, (0, -15), fontsize=9, ha="center", color=INK,
                      textcoords="offset points", parse_math=False)  # fmt: skip
    for id_, adds in ends.groupby("destination")["contribution"]:
        axes.annotate(", ".join(f"{one:.3g}" for one in adds), at[id_], (14, -3), fontsize=9,
                      textcoords="offset points", color=SEED)  # fmt: skip
    axes.margins(0.1, 0.25)
    axes.axis("off")
    return axes


def _check_columns(frame: Any, names: tuple[str, ...], argument: str) -> None:
    """Raise if a column is missing, before there is a figure."""
    if missing := [name for name in names if name not in frame]:
        raise ValueError(
            f"{argument} has no column {missing[0]!r}; there are {list(map(str, frame.columns))}"
        )


def _along(paths: pd.DataFrame) -> dict[Any, tuple[float, float]]:
    """Place who is on paths by step, and by the first path that passes."""
    rows = paths["path"].rank(method="dense").to_numpy() - 1
    at = {paths["source"].iloc[0]: (0.0, -rows.max() / 2)}
    for id_, step, row in zip(paths["destination"], paths["step"], rows, strict=True):
        at.setdefault(id_, (float(step + 1), -float(row)))
    return at


def _layout(number: int, ends: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Place vertices in a disc: springs and repulsion (Fruchterman, Reingold 1991)."""
    angle = np.arange(number) * (np.pi * (3 - np.sqrt(5)))
    at = np.sqrt((np.arange(number) + 0.5) / number)[:, None] * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    )
    length = 1.6 / np.sqrt(max(number, 1))
    pull = np.log1p(weight)
    for step in range(LAYOUT_STEPS):
        apart = at[:, None] - at[None]
        distance = np.maximum(np.hypot(*apart.transpose(2, 0, 1)), 1e-3)
        # a pull to the centre keeps parts that are not connected together
        force = (apart * (length / distance)[..., None] ** 2).sum(axis=1) - 0.6 * at
        along = at[ends[:, 1]] - at[ends[:, 0]]
        spring = along * (np.hypot(*along.T) / length * pull / max(pull.max(initial=1), 1))[:, None]
        np.add.at(force, ends[:, 0], 0.1 * spring)
        np.add.at(force, ends[:, 1], -0.1 * spring)
        size = np.maximum(np.hypot(*force.T), 1e-9)
        heat = 0.12 * (1 - step / LAYOUT_STEPS)
        at = at + force * (np.minimum(size, heat) / size)[:, None]
    at -= at.mean(axis=0)
    return at / max(np.hypot(*at.T).max(initial=0), 1e-9)


def _draw_outside(axes, at, member, outsiders, transfers, most, sellers):
    """Draw neighbours around the cluster, each in the direction of whom it trades with."""
    links = pd.DataFrame({"member": member, "outsider": outsiders.to_numpy(), "n": transfers})
    by_outsider = links.groupby("outsider")
    top = by_outsider["n"].sum().nlargest(most).index
    links = links[links["outsider"].isin(top)]
    if links.empty:
        return
    pulls = pd.DataFrame(at[links["member"]] * links[["n"]].to_numpy(), columns=["x", "y"])
    centre = pulls.groupby(links["outsider"].to_numpy()).sum()
    order = np.argsort(np.arctan2(centre["y"], centre["x"]).to_numpy(), kind="stable")
    start = np.arctan2(centre["y"], centre["x"]).to_numpy()[order[0]]
    angle = start + 2 * np.pi * np.arange(len(order)) / len(order)
    radius = RING_RADIUS + FAR * (np.arange(len(order)) % 3)
    around = pd.DataFrame(
        {"x": radius * np.cos(angle), "y": radius * np.sin(angle)}, index=centre.index[order]
    )
    where = around.loc[links["outsider"]].to_numpy()
    segments = np.stack([at[links["member"]], where], axis=1)
    _draw_lines(axes, segments, links["n"].to_numpy(), FAINT, 0.45)
    square = around.index.isin(list(sellers))
    for chosen, marker in ((square, "s"), (~square, "o")):
        axes.scatter(*around[chosen].to_numpy().T, s=12, marker=marker, color=FAINT, zorder=2,
                     linewidths=0)  # fmt: skip


def _draw_lines(axes, segments, transfers, colour, alpha):
    from matplotlib.collections import LineCollection

    widths = 0.5 + 0.55 * np.log2(np.maximum(transfers, 1))
    axes.add_collection(
        LineCollection(segments, linewidths=widths, colors=colour, alpha=alpha, zorder=1)
    )


def _draw_members(axes, at, inside, sellers):
    from matplotlib import colormaps

    score = inside["score"].to_numpy(np.float64)
    shade = (score - score.min()) / max(np.ptp(score), 1e-12)
    colours = colormaps["YlOrBr"](0.25 + 0.5 * shade)
    seed = inside["is_seed"].to_numpy(bool)
    square = inside["vertex"].isin(list(sellers)).to_numpy()
    kinds = ((~seed, None, 130, "found"), (seed, SEED, 170, "on the blacklist"))
    for chosen, colour, size, label in kinds:
        for shape, marker in ((~square, "o"), (square, "s")):
            part = chosen & shape
            if part.any():
                axes.scatter(
                    *at[part].T, s=size, marker=marker, zorder=3, edgecolors=INK, linewidths=1.1,
                    color=colours[part] if colour is None else [colour] * int(part.sum()),
                    label=f"{label}, {'merchant' if marker == 's' else 'account'}"
                    if square.any() else label,
                )  # fmt: skip
