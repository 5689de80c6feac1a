"""Where warm starts begin on a GPU: the same labels and refusals as on a CPU."""

import graphs
import numpy as np
import pandas as pd
import pytest
from test_warm_start import Counting
from warm_runs import on_host

from glp_rapids import as_graph, label_propagation, propagate
from glp_rapids.device import device_of, to_host
from glp_rapids.propagation.warm_start import start_of

pytestmark = [
    pytest.mark.gpu,
    # the RAPIDS libraries warn about each other's deprecations
    pytest.mark.filterwarnings("default"),
]


# ---------------------------------------------------------------- where a run begins


def kinds_of(frame):
    """The frame, and its twins on a GPU."""
    yield frame
    try:
        import cudf
    except ImportError:
        return
    yield cudf.from_pandas(frame)


def assert_same_start(graph, on_gpu, initial, **how):
    expected = start_of(graph, initial, **how)
    for given_frame in kinds_of(initial):
        found = start_of(on_gpu, given_frame, **how)
        for name in ("labels", "new", "touched"):
            one, other = getattr(found, name), getattr(expected, name)
            assert (one is None) == (other is None)
            if other is not None:
                assert device_of(one) == "gpu"
                order = sorted if name == "new" else list
                assert order(to_host(one).tolist()) == other.tolist()
        assert found.labels.dtype == expected.labels.dtype


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_a_run_begins_as_on_a_cpu(name):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    on_gpu, random = graph.to("gpu"), np.random.default_rng(2)
    n = graph.number_of_vertices
    partition = random.integers(0, max(n // 3, 1), n)
    earlier = graph.frame({"partition": partition})
    keys = [column for column in earlier if column != "partition"]
    for numbers in (partition, partition - 1, 7 * partition - 3, partition.astype(np.uint8),
                    partition + 10**15, partition.astype(np.int8) - 1):  # fmt: skip
        one = earlier.assign(partition=numbers)
        assert_same_start(graph, on_gpu, one)
        assert_same_start(graph, on_gpu, one.sample(frac=0.7, random_state=1))
        assert_same_start(graph, on_gpu, one.sample(frac=0.95, random_state=1))
        if not (name == "negative" or (one["partition"] == -1).any()):
            assert_same_start(graph, on_gpu, one, may_be_silent=True)
    texts = earlier.assign(partition=[f"community {number}" for number in partition])
    assert_same_start(graph, on_gpu, texts[::-1])
    named = label_propagation(graph, max_iter=1, renumber=False)
    assert_same_start(graph, on_gpu, named[::-1])
    silent = earlier.assign(partition=pd.array(partition, dtype="Int64"))
    if n:
        silent.loc[::3, "partition"] = None
    assert_same_start(graph, on_gpu, silent, may_be_silent=True)
    ids = earlier[keys] if len(keys) > 1 else earlier[keys[0]]
    assert_same_start(graph, on_gpu, earlier, touched=ids[::2])
    assert_same_start(graph, on_gpu, earlier.head(0), touched=[])


def test_partitions_and_ids_may_lie_anywhere(cupy):
    graph = as_graph(**graphs.GRAPHS["power law"](), device="cpu")
    on_gpu, n = graph.to("gpu"), graph.number_of_vertices
    earlier = graph.frame({"partition": np.arange(n) // 3})
    whole = start_of(on_gpu, earlier, touched=cupy.arange(0, n, 2))
    assert to_host(whole.labels).tolist() == start_of(graph, earlier).labels.tolist()
    there = start_of(graph, earlier, touched=np.arange(0, n, 2)).touched
    assert to_host(whole.touched).tolist() == there.tolist()
    assert to_host(whole.new).size == 0


EDGES = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3]})


def frame_of(vertices, partition):
    return pd.DataFrame({"vertex": vertices, "partition": partition})


@pytest.mark.parametrize(
    "options",
    [
        {"initial": [0, 0]},
        {"initial": frame_of([0, 1, 0], [1, 1, 2])},
        {"initial": frame_of([3, 2, 2, 3], [1, 1, 2, 2])},
        {"initial": frame_of([3, 9, 9, 2, 3, 2], [1, 0, 1, 2, 2, 1])},
        {"initial": frame_of([0, 1], [1, None])},
        {"initial": frame_of([0, None], [1, 1])},
        {"initial": frame_of([0, 1], ["a", None])},
        {"initial": frame_of(["0", "1"], [1, 1])},
        {"initial": frame_of([0.0, 1.0], [1, 1])},
        {"initial": pd.DataFrame({"0_vertex": [0], "1_vertex": [0], "partition": 0})},
        {"initial": frame_of([0], [0]), "touched": ["a"]},
        {"initial": frame_of([0], [0]), "touched": 3},
        {"initial": frame_of([0], [0]), "touched": [0, None]},
    ],
    ids=str,
)
def test_bad_starts_are_refused_in_the_same_words(options):
    said = []
    for device in ("cpu", "gpu"):
        with pytest.raises((TypeError, ValueError)) as caught:
            label_propagation(EDGES, device=device, **options)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


def test_silence_that_may_be_an_id_is_refused():
    below = pd.DataFrame({"src": [-1, 0], "dst": [0, 1]})
    silent = frame_of([-1, 0, 1], [-1, 0, 0])
    for device in ("cpu", "gpu"):
        with pytest.raises(ValueError, match="initial: the partition -1 may stand for silent ve"):
            propagate(below, Counting(), initial=silent, device=device)


def test_silence_is_a_start():
    star = graphs.GRAPHS["star"]()
    silent = frame_of(range(40), [10**6, *[-1] * 38, 10**6])
    options = {"update": "sync", "max_iter": 3, "initial": silent}
    expected = propagate(program=Counting(), device="cpu", **star, **options)
    found = propagate(program=Counting(), device="gpu", **star, **options)
    assert on_host(found)["partition"].tolist() == expected["partition"].tolist()
