"""GPUs that write into one another's memory, without a GPU: who is asked, what errors do."""

import contextlib
import gc
import sys
import weakref
from types import ModuleType

import pytest

from glp_rapids.multigpu import peers
from glp_rapids.multigpu.exchange import as_ranks
from glp_rapids.multigpu.peers import ALREADY, REFUSED, reach_one_another


class RuntimeFailure(RuntimeError):
    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Driver:
    """CuPy's runtime, or so; ``apart``: pairs without access, ``status``: what enabling says."""

    CUDARuntimeError = RuntimeFailure

    def __init__(self, apart=(), status=0):
        self.apart, self.status, self.current, self.enabled = apart, status, None, []

    def deviceCanAccessPeer(self, one, other):
        return (one, other) not in self.apart

    def deviceEnablePeerAccess(self, other):
        self.enabled.append((self.current, other))
        if self.status:
            raise RuntimeFailure(self.status)

    @contextlib.contextmanager
    def device(self, number):
        self.current = number
        yield
        self.current = None


@pytest.fixture
def driven(monkeypatch):
    monkeypatch.setattr(peers, "_reached", {})

    def use(driver):
        cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
        cupy.cuda, cuda.runtime, cuda.Device = cuda, driver, driver.device
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
        return driver

    return use


@pytest.mark.parametrize("status", [0, ALREADY])
def test_each_may_write_to_all_others(driven, status):
    driver = driven(Driver(status=status))
    assert reach_one_another((0, 1, 3))
    assert driver.enabled == [(0, 1), (0, 3), (1, 0), (1, 3), (3, 0), (3, 1)]


def test_they_are_asked_once(driven):
    driver = driven(Driver())
    assert reach_one_another((0, 1))
    assert reach_one_another((0, 1))
    assert len(driver.enabled) == 2


@pytest.mark.parametrize("status", REFUSED)
def test_a_driver_that_refuses_leaves_nccl(driven, status):
    driven(Driver(status=status))
    assert not reach_one_another((0, 1))


def test_one_pair_apart_is_enough_for_nccl(driven):
    driver = driven(Driver(apart={(1, 0)}))
    assert not reach_one_another((0, 1))
    assert driver.enabled == []


def test_one_gpu_reaches_itself(driven):
    driver = driven(Driver())
    assert reach_one_another((2,))
    assert driver.enabled == []


def test_other_errors_are_raised(driven):
    driven(Driver(status=2))
    with pytest.raises(RuntimeFailure, match="2"):
        reach_one_another((0, 1))


def test_what_failed_ranks_held_goes_with_their_error():
    class Held:
        pass

    def failing():
        held = Held()
        watched.append(weakref.ref(held))
        raise KeyError("lost")

    watched = []
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(KeyError):
            as_ranks([failing, lambda: None], lambda error: None)
        assert [one() for one in watched] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("reach", "problem", "how"),
    [(True, "no NCCL", "peer stores"), (False, None, "nccl"), (False, "no NCCL", "copies")],
)
def test_what_carries_winners(reach, problem, how, monkeypatch):
    partitioned_gpu = pytest.importorskip(
        "glp_rapids.propagation.engines.partitioned_gpu", reason="numba-cuda is not installed"
    )
    monkeypatch.setattr(partitioned_gpu, "reach_one_another", lambda devices: reach)
    monkeypatch.setattr(partitioned_gpu, "nccl_problem", lambda: problem)
    assert partitioned_gpu.how_of((0, 1)) == how
    for chosen in ("nccl", "copies"):
        monkeypatch.setattr(partitioned_gpu, "chosen", chosen)
        assert partitioned_gpu.how_of((0, 1)) == chosen
    monkeypatch.setattr(partitioned_gpu, "chosen", "peer stores")
    if reach:
        assert partitioned_gpu.how_of((0, 1)) == "peer stores"
    else:
        with pytest.raises(RuntimeError, match="cannot write to one another's memory"):
            partitioned_gpu.how_of((0, 1))
