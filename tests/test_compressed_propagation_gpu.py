"""A GPU gives on compressed graphs what a CPU gives on plain ones, to the last bit."""

from dataclasses import replace
from functools import partial
from itertools import product

import graphs
import numpy as np
import pytest
import reference_compressed as reference
from programs import PROGRAMS, Distances
from test_compressed_propagation import SCHEMES, SELECTED, assert_same, shuffled

from glp_rapids import as_graph, compress, label_propagation, propagate
from glp_rapids.compressed import weights as compressed_weights
from glp_rapids.compressed.format import packed_tables
from glp_rapids.compressed.weights import CodedWeights, EqualWeights

# Program, scheme, whether lists are in an order, weights, and how lists are laid out. Each is a
# kernel of its own, which takes most of a minute to compile; pytest-xdist can deal them out. Of
# "packed", only parts of 128 without weights, of intervals of two or more, are read where they are
# counted.
KERNELS = [
    *[("classic", scheme, ordered, None, {}) for scheme in SCHEMES for ordered in (False, True)],
    ("classic", "packed", False, "array", {}),
    ("classic", "packed", True, "array", {}),
    ("classic", "cgr", False, "table", {}),
    ("classic", "cgr", True, "equal", {}),
    ("classic", "packed", False, None, {"min_interval": 2, "raw_below": 16}),
    ("classic", "packed", False, None, {"min_interval": 0}),
    ("classic", "packed", False, None, {"segment": 64}),
    ("classic", "packed", True, None, {"segment": 64, "min_interval": 1}),
    ("classic", "packed", False, None, {"segment": 8, "raw_below": 16}),
    ("layered", "cgr", False, None, {}),
    ("layered", "packed", True, None, {}),
    ("speakers", "packed", False, None, {}),
    ("seeded", "packed", False, None, {}),
    ("counting", "cgr", False, None, {"segment": 64}),
    ("counting", "packed", False, None, {}),
]


def by_table(weights):
    values, codes = np.unique(weights, return_inverse=True)
    return CodedWeights(codes.astype(np.uint8), values)


def one_for_all(weights):
    return EqualWeights(np.full(1, 2.5, np.float32), weights.size)


def skewed():
    """Give a graph with rows of every length, neighbours side by side and far apart."""
    rng = np.random.default_rng(6)
    degrees = np.repeat([3200, 200, 100, 40, 20, 10, 1], [1, 4, 8, 16, 32, 64, 500])
    source = np.repeat(np.arange(degrees.size), degrees)
    runs = (source * 5 + np.arange(source.size)) % 4000
    far = rng.integers(0, 4000, source.size)
    return graphs.edges(np.column_stack([source, np.where(source % 3 == 0, runs, far)]).tolist())


# Where lists of a lane, a warp and a block end, a part, the slice of a table, and pieces of a hub.
BOUNDARIES = [16, 17, 32, 33, 127, 128, 129, 255, 256, 257, 384, 385, 1024, 1025, 2816, 2817]


def boundaries():
    """Give a graph with lists of exactly so many entries: alone, in runs, and of both."""
    pairs, ranks = [], np.arange(max(BOUNDARIES))
    steps = [1 + 0 * ranks, 2 + 0 * ranks, 1 + (ranks % 6 == 5), 1 + (ranks % 9 > 4)]
    leaves = [1000 + np.cumsum(step) for step in steps]
    for v, (degree, own) in enumerate(product(BOUNDARIES, leaves)):
        pairs += [(v, leaf) for leaf in own[:degree].tolist()]
    return graphs.edges(pairs)


def weighed(keywords, weights):
    """Drop the weights of a graph, or give it those of one kind."""
    frame = keywords.pop("graph").drop(columns="weight", errors="ignore")
    keywords = {key: keywords[key] for key in keywords.keys() - {"weight", "multigraph"}}
    if weights in (None, "equal"):
        return {"graph": frame, **keywords}
    draws = np.random.default_rng(len(frame)).random(len(frame)).astype(np.float32)
    drawn = draws if weights == "array" else np.floor(4 * draws.astype(np.float64)) / 2
    return {"graph": frame.assign(weight=drawn), "weight": "weight", **keywords}


def graphs_of_a_kind(weights, directed):
    """Give by name the graphs whose runs take one kernel."""
    # without entries first: the first run decides of what types the kernel takes arrays
    first = {"only isolated": graphs.GRAPHS["only isolated"], "skewed": skewed}
    for name, make in (first | {"boundaries": boundaries} | graphs.GRAPHS).items():
        keywords = weighed(make(), weights)
        if directed or not keywords.get("directed"):
            graph = as_graph(**keywords, device="cpu")
            if weights == "equal":  # also of what was there twice
                equal = np.full(graph.number_of_edges, 2.5, np.float32)
                graph = replace(graph, weights=equal, _derived={})
            yield name, graph


def assert_a_gpu_gives_the_same(program, plain, compress_it, ways=("in", "out"), **how):
    if program == "seeded" and plain.number_of_vertices == 0:
        return
    for direction in ways if plain.directed else ("in",):
        compressed = compress_it(plain).to("gpu")
        for options in ({}, {"update": "sync"}):
            options = {"direction": direction, **options}
            expected = PROGRAMS[program](plain, **options, device="cpu")
            assert_same(PROGRAMS[program](compressed, **options, **how, device="gpu"), expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("program", "scheme", "ordered", "weights", "layout"), KERNELS)
def test_a_gpu_gives_the_same(monkeypatch, program, scheme, ordered, weights, layout):
    # to have weights of one form in all graphs, so that there is one kernel
    forms = {"array": lambda weights: weights, "table": by_table, "equal": one_for_all}
    form = forms.get(weights)
    monkeypatch.setattr(compressed_weights, "coded", form)

    def compress_it(plain):
        order = shuffled(plain) if ordered else None
        return compress(plain, scheme, order=order, **layout, device="cpu")

    kind = {"weights": weights, "directed": (program, scheme) == ("classic", "packed")}
    for _, plain in graphs_of_a_kind(**kind):
        # the order that vertices are in anyway is none, which is another kernel
        if ordered and (np.diff(shuffled(plain)) > 0).all():
            continue
        assert_a_gpu_gives_the_same(program, plain, compress_it)
    if not kind["directed"]:
        return
    # A class in strips, and groups that are decoded when the one before is done: the same kernel.
    from glp_rapids.propagation.engines import gpu_compressed, launched

    plain = as_graph(**weighed(skewed(), weights), device="cpu")
    for least, early in [(1 << 11, launched.EARLY), (1 << 11, 0), (1 << 23, 0)]:
        monkeypatch.setattr(gpu_compressed, "LEAST_BYTES", least)
        monkeypatch.setattr(gpu_compressed, "BYTES_A_VERTEX", 0)
        monkeypatch.setattr(launched, "EARLY", early)
        assert_a_gpu_gives_the_same(program, plain, compress_it, skip_inactive=True)
        assert_a_gpu_gives_the_same(program, plain, compress_it, skip_inactive=False)


@pytest.mark.gpu
def test_a_program_is_asked_about_neighbours_only():
    plain = as_graph(**boundaries(), device="cpu")
    for options in ({}, {"update": "sync"}):
        expected = propagate(plain, Distances(), **options, device="cpu")
        compressed = compress(plain, device="cpu").to("gpu")
        assert_same(propagate(compressed, Distances(), **options, device="gpu"), expected)


# Widths that suit no graph, as another writer may choose them: counts of more bits than a few, and
# numbers of more than 32.
@pytest.mark.gpu
@pytest.mark.parametrize("widths", [[0, 3, 14, 33, 45, 50, 56, 57], [40, 0, 0, 0, 0, 0, 0, 56]])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_gpu_reads_any_widths(monkeypatch, widths, ordered):
    words = reference.words_of({kind: widths for kind in reference.KINDS})
    tables = np.array(words, np.uint32)
    packed_tables.check(tables)
    monkeypatch.setattr(packed_tables, "tables_of", lambda *_: tables)
    for make in (skewed, graphs.GRAPHS["power law"], graphs.GRAPHS["hub"]):
        plain = as_graph(**weighed(make(), None), device="cpu")
        order = shuffled(plain) if ordered else None
        compress_it = partial(compress, scheme="packed", order=order, device="cpu")
        assert compress_it(plain).lists.tables.tolist() == words
        assert_a_gpu_gives_the_same("classic", plain, compress_it)


@pytest.mark.gpu
def test_a_gpu_gives_the_same_where_it_decodes_everything():
    for name, plain in graphs_of_a_kind(None, directed=True):
        orders = (None, shuffled(plain)) if name in (*SELECTED, "skewed") else (None,)
        for order in orders:
            compress_it = partial(compress, scheme="packed", segment=64, order=order, device="cpu")
            assert_a_gpu_gives_the_same("classic", plain, compress_it, strategy="decode")
        if plain.directed:  # these rows are decoded for good, so the kernel is that of plain ones
            assert_a_gpu_gives_the_same("classic", plain, compress_it, ways=("both",))


@pytest.mark.gpu
def test_a_gpu_refuses_the_strategies_of_plain_graphs():
    graph = compress(as_graph(**graphs.GRAPHS["star"](), device="cpu")).to("gpu")
    with pytest.raises(ValueError, match="strategy of a compressed graph must be one of"):
        label_propagation(graph, strategy="sort")
    with pytest.raises(ValueError, match="strategy of a plain graph must be one of"):
        label_propagation(**graphs.GRAPHS["star"](), strategy="decode", device="gpu")
    directed = compress(as_graph(**graphs.GRAPHS["directed"](), device="cpu")).to("gpu")
    with pytest.raises(ValueError, match=r"direction.*'decode'") as raised:
        label_propagation(directed, direction="both", strategy="decode")
    assert "a plain graph" not in str(raised.value)
