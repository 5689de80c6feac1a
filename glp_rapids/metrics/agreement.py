"""How alike two partitions are: NMI and ARI, and F1 for covers whose communities overlap.

Everything follows from how many communities have each size, counted in integers. The few floats
are added on the host, so a value is the same to the last bit on CPU and GPU, in any order of
rows and under any names of the communities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import errors_named
from glp_rapids.common.segments import occurrences
from glp_rapids.device import array_module, to_host
from glp_rapids.frames.kinds import ids_as_text
from glp_rapids.frames.partitions import (
    as_frame,
    kept,
    label_codes,
    names_vertices,
    vertex_columns,
)
from glp_rapids.metrics.columns import refuse_ids_apart, same_kind


@guarded
def nmi(a: Any, b: Any) -> float:
    """Compute the normalised mutual information of two partitions.

    Mutual information over the arithmetic mean of the two entropies: 1 for the same partition
    under whatever names, 0 for independent ones.

    Parameters
    ----------
    a, b : frame, dict, list of sets, or array_like of shape (n,)
        Two partitions of the same vertices, joined on the vertex, each a frame ``vertex,
        partition``, a dict of vertices and communities, or sets of vertices, as NetworkX has them;
        or two sequences of labels, position by position. Labels may be of any dtype.

    Returns
    -------
    float
        From 0 to 1. Two partitions with nothing to tell (all in one community) agree: 1.

    Raises
    ------
    ValueError
        If lengths or vertices differ, a vertex occurs twice, or a label is null.
    TypeError
        If one is of labels only and the other is not.

    Notes
    -----
    O(n log n) time, O(n) memory. Danon et al., "Comparing community structure identification",
    J. Stat. Mech. (2005), eq. 2; scikit-learn's ``normalized_mutual_info_score``.

    Examples
    --------
    >>> from glp_rapids import nmi
    >>> nmi([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    counts_a, counts_b, counts_both = _contingency(a, b)
    entropy_a, entropy_b = _entropy(counts_a), _entropy(counts_b)
    if entropy_a == entropy_b == 0:
        return 1.0
    information = entropy_a + entropy_b - _entropy(counts_both)
    return min(max(information / ((entropy_a + entropy_b) / 2), 0.0), 1.0)


@guarded
def ari(a: Any, b: Any) -> float:
    """Compute the adjusted Rand index of two partitions.

    The share of vertex pairs on which both agree (together or apart), corrected for chance.

    Parameters
    ----------
    a, b : frame or array_like of shape (n,)
        As for `nmi`.

    Returns
    -------
    float
        1 for the same partition, about 0 for random ones, negative for worse than random.

    Raises
    ------
    ValueError, TypeError
        As `nmi`.

    Notes
    -----
    O(n log n) time, O(n) memory; exact integers up to the last division. Hubert and Arabie,
    "Comparing partitions", J. Classification 2 (1985), eq. 5; scikit-learn's
    ``adjusted_rand_score``.

    Examples
    --------
    >>> from glp_rapids import ari
    >>> ari([0, 0, 1, 1], [0, 0, 1, 2])
    0.5714285714285714
    """
    counts_a, counts_b, counts_both = _contingency(a, b)
    n = _moment(counts_a, 1)
    in_a, in_b, in_both = (_moment(counts, 2) for counts in (counts_a, counts_b, counts_both))
    together, only_a, only_b = in_both - n, in_a - in_both, in_b - in_both
    apart = n * n - in_a - in_b + in_both
    if only_a == only_b == 0:
        return 1.0
    excess = 2 * (together * apart - only_a * only_b)
    return excess / (
        (together + only_b) * (only_b + apart) + (together + only_a) * (only_a + apart)
    )


def cover_f1(a: Any, b: Any) -> float:
    """Compare two covers, whose communities may overlap, by the average F1 of best matches.

    Each community is matched with the one of the other cover that gives the highest F1; these are
    averaged over the communities of ``a``, over those of ``b``, and the two averages again.

    Parameters
    ----------
    a, b : frame, dict or list of sets
        Columns ``vertex`` (or ``0_vertex``, ...) and ``partition``; a vertex may have several
        rows: what `speaker_listener` returns. Or sets of vertices, which may overlap, or a dict of
        vertices and communities. A vertex may be missing from either.

    Returns
    -------
    float
        1 for the same cover, 0 for covers without a vertex in common.

    Raises
    ------
    ValueError
        If a column is missing, a label is null or a cover is empty.
    TypeError
        If one is none of these.

    Notes
    -----
    O(sum over vertices of the product of their memberships) time and memory. Yang and Leskovec,
    "Overlapping community detection at scale", WSDM 2013, section 5.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.metrics import cover_f1
    >>> a = pd.DataFrame({"vertex": [0, 1, 2, 2, 3], "partition": [0, 0, 0, 1, 1]})
    >>> b = pd.DataFrame({"vertex": [0, 1, 2, 3], "partition": [0, 0, 1, 1]})
    >>> cover_f1(a, b)
    0.9
    """
    a, b, keys = _comparable(a, b)
    with errors_named("a, b"):
        return _cover_f1(_memberships(a, "a", keys), _memberships(b, "b", keys), keys)


def _cover_f1(a: Any, b: Any, keys: list[str]) -> float:
    shared = a.merge(b, on=keys).groupby(["a", "b"]).size().reset_index(name="shared")
    shared = shared.merge(_sizes(a, "a"), on="a").merge(_sizes(b, "b"), on="b")
    shared["f1"] = 2 * shared["shared"] / (shared["a_size"] + shared["b_size"])
    averages = [
        math.fsum(to_host(shared.groupby(side)["f1"].max().values)) / cover[side].nunique()
        for side, cover in (("a", a), ("b", b))
    ]
    return sum(averages) / 2


def _contingency(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the vertices in each community of a, of b, and of both, on the host."""
    codes_a, codes_b = _paired_codes(a, b)
    xp = array_module(codes_a)
    height, width = (int(codes.max()) + 1 if codes.size else 1 for codes in (codes_a, codes_b))
    _, both = xp.unique(codes_a * width + codes_b, return_counts=True)
    alone = occurrences(codes_a, height), occurrences(codes_b, width)
    return tuple(to_host(counts) for counts in (*alone, both))


def _paired_codes(a: Any, b: Any) -> tuple[Any, Any]:
    """Turn the two labels of each vertex into integers, on one device."""
    a, b = kept(a), kept(b)
    if names_vertices(a) != names_vertices(b):
        raise TypeError(
            "a and b must both be frames 'vertex, partition', dicts or sets of vertices, or both "
            "be labels"
        )
    if names_vertices(a):
        frames = _comparable(a, b)
        with errors_named("a, b"):
            a, b = _joined(*frames)
    codes_a, codes_b = label_codes(a, "a"), label_codes(b, "b")
    if len(codes_a) != len(codes_b):
        raise ValueError(
            f"a and b must label the same vertices, but hold {len(codes_a)} and "
            f"{len(codes_b)} labels"
        )
    if array_module(codes_a) is not array_module(codes_b):
        codes_a, codes_b = to_host(codes_a), to_host(codes_b)
    return codes_a, codes_b


def _comparable(a: Any, b: Any) -> tuple[Any, Any, list[str]]:
    """Read both into frames of one library; return them and the columns of their vertices."""
    a, b = same_kind(as_frame(a, "a"), as_frame(b, "b"))
    keys = vertex_columns(a, "a")
    if vertex_columns(b, "b") != keys:
        raise ValueError(f"a and b name their vertices differently: {keys} in a, not so in b")
    refuse_ids_apart(a, b, keys)
    return a, b, keys


def _joined(a: Any, b: Any, keys: list[str]) -> tuple[Any, Any]:
    """Line two frames up on their vertices; return the two columns of labels."""
    for name, frame in (("a", a), ("b", b)):
        twice = frame[keys].duplicated()
        if bool(twice.any()):
            raise ValueError(
                f"a, b: {name} has several rows for {int(twice.sum())} vertices, or has them in "
                f"several sets, among them {ids_as_text(frame[keys][twice].head(5))}; compare "
                "covers with cover_f1"
            )
    left = a[[*keys, "partition"]].rename(columns={"partition": "a"})
    right = b[[*keys, "partition"]].rename(columns={"partition": "b"})
    both = left.merge(right, on=keys)
    for name, frame, other in (("b", left, "a"), ("a", right, "b")):
        if len(both) < len(frame):
            rest = frame.merge(both[keys].assign(_both=True), on=keys, how="left")
            rest = rest[rest["_both"].isna()]
            raise ValueError(
                f"a, b: {name} lacks {len(rest)} vertices that {other} has, among them "
                f"{ids_as_text(rest[keys].head(5))}"
            )
    return both["a"], both["b"]


def _entropy(counts: np.ndarray) -> float:
    """Compute the entropy, in nats, of a distribution given by counts."""
    # by size and how many have it: the order of communities cannot show in the sum
    sizes, times = np.unique(counts, return_counts=True)
    if len(sizes) == 0 or len(counts) == 1:
        return 0.0
    n = float(sizes @ times)
    return math.log(n) - float(np.sum(times * (sizes * np.log(sizes)))) / n


def _moment(counts: np.ndarray, power: int) -> int:
    """Sum the powers of counts as a Python integer."""
    sizes, times = np.unique(counts, return_counts=True)
    pairs = zip(sizes.tolist(), times.tolist(), strict=True)
    return sum(times * size**power for size, times in pairs)


def _memberships(frame: Any, side: str, keys: list[str]) -> Any:
    """List the distinct (vertex, community) of a cover, the community in the column ``side``."""
    if len(frame) == 0:
        raise ValueError(f"a, b: {side} is an empty cover")
    if bool(frame["partition"].isna().any()):
        raise ValueError(f"a, b: {side} holds a null label; drop those rows or give them a label")
    return frame[[*keys, "partition"]].rename(columns={"partition": side}).drop_duplicates()


def _sizes(memberships: Any, side: str) -> Any:
    """Count the members of each community."""
    return memberships.groupby(side).size().reset_index(name=f"{side}_size")
