"""What all tests share: devices, the folder of real graphs, and which tests a machine collects."""

import gc
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from glp_rapids.device import gpu_available

# What several files assert: it is shown as in their own tests.
pytest.register_assert_rewrite(
    "built_graphs", "chunked_tables", "command_line", "dask_runs", "gpu_graphs", "label_twins",
    "matrix_graphs", "memory_limits", "monitors", "warm_runs",
)  # fmt: skip

# Processes share the cores here, and threads that spin while they wait take them from each other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Compiling may take seconds, and only the first example of a kind pays for it.
settings.register_profile(
    "default", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


# Collections took a ninth of the time of all tests. A compiler makes objects by the million, and
# keeps most.
gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="module", autouse=True)
def _few_objects_to_look_through():
    """Leave what tests, modules and compiled functions hold out of later collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def client():
    """A client of a Dask cluster with two processes."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({
            # so long does who sends to a worker that died stay with it
            "distributed.comm.timeouts.connect": "10s",
            # and so long is a cluster kept for who has closed its client in a run
            "distributed.scheduler.locks.lease-timeout": "5s",
            "distributed.scheduler.locks.lease-validation-interval": "1s",
        }),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture
def cudf():
    return pytest.importorskip("cudf", reason="cuDF is not installed")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.fixture
def pool_of_cupy(cupy):
    """CuPy's own allocator, which counts: whoever imports cuDF, an earlier test say, has RMM's."""
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)  # for all threads
    yield
    cupy.cuda.set_allocator(before)


class NeedGpu(pytest.Item):
    """Stands for the tests of a file that need a GPU, where there is none: it is skipped."""

    def runtest(self):
        raise AssertionError("it is marked to be skipped")

    def reportinfo(self):
        return self.path, 0, self.name


FILES = pytest.StashKey()  # those collected, and those of them with tests that need a GPU


# The files that take longest, in this order before the others, so that no process is left with one.
# Neighbours compile different kernels.
LONGEST = [
    f"test_{name}"
    for name in (
        "compressed_propagation", "cuda", "multilevel_cuda", "dask", "diversity_cuda", "examples",
        "diversity", "window", "several", "program", "shuffle", "diversity_engines",
        "monitor_folder", "program_bounds", "traversal_cuda", "processes", "bench_memory",
        "label_propagation", "shipped_code", "dask_ends", "mapped", "ingest_chunks",
        "traversal_sources", "program_fuzz", "docstrings", "fingerprint",
    )
]  # fmt: skip


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    needing = {item.path for item in items if item.get_closest_marker("gpu")}
    config.stash[FILES] = {item.path for item in items}, needing
    if not gpu_available():
        items[:] = one_a_file(items)
    yield  # -m and -k choose
    first = dict(zip(LONGEST, range(-len(LONGEST), 0), strict=True))
    items.sort(key=lambda item: first.get(item.path.stem, 0))


def one_a_file(items):
    """Put one item in the place of all of a file that need a GPU."""
    absent, kept = defaultdict(list), []
    for item in items:
        if item.get_closest_marker("gpu"):
            absent[item.getparent(pytest.Module)].append(item)
        else:
            kept.append(item)
    for module, tests in absent.items():
        instead = NeedGpu.from_parent(module, name="needs_a_gpu")
        reason = f"no CUDA device with CuPy and numba-cuda: {len(tests)} tests need one"
        instead.add_marker(pytest.mark.skip(reason))
        instead.add_marker("gpu")
        kept.append(instead)
    return kept


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    return request.param


@pytest.fixture(scope="session")
def data():
    """The folder of real graphs with known answers."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("GLP_RAPIDS_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real graphs in {folder}; set GLP_RAPIDS_DATA to their folder")
    os.environ["GLP_RAPIDS_DATA"] = str(folder)  # for glp_rapids.datasets, wherever it is installed
    return folder


@pytest.fixture
def full_of_old(cupy, pool_of_cupy):
    """Let new memory of a GPU hold what names no vertex: who reads that before writing fails."""
    before = cupy.cuda.get_allocator()

    def allocated(size):
        memory = before(size)
        if size:
            cupy.cuda.runtime.memsetAsync(memory.ptr, 0x7F, size, 0)
        return memory

    cupy.cuda.set_allocator(allocated)
    yield
    cupy.cuda.set_allocator(before)
