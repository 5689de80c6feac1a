"""How much of a GPU is free, where RMM has taken over."""

import sys
from types import SimpleNamespace

import pytest
from stand_in_cupy import stand_ins

from glp_rapids import device


class Resource:
    """As RMM's: what asks CUDA, a pool, and what counts what another gives."""

    def __init__(self, upstream=None):
        self.upstream = upstream

    def get_upstream(self):
        return self.upstream


class Plain(Resource):
    pass


class Statistics(Resource):
    pass


class Tracking(Resource):
    pass


@pytest.mark.parametrize(
    ("resource", "free"),
    [
        (Plain(), 10), (Statistics(Plain()), 10), (Tracking(Statistics(Plain())), 10),
        (Resource(), None), (Statistics(Resource()), None),
    ],
)  # fmt: skip
def test_of_rmm_what_is_free_is_what_cuda_has(monkeypatch, resource, free):
    """And not what CuPy's own pool holds, which RMM cannot have."""
    asked = stand_ins(monkeypatch)
    cupy, pool = asked.cupy, asked.cupy.get_default_memory_pool()
    cupy.cuda.runtime = SimpleNamespace(memGetInfo=lambda: (10, 100))
    pool.free_bytes = lambda: 60
    asked.set_now[0] = pool.malloc
    assert device.free_on_gpu() == 70
    theirs = SimpleNamespace(rmm_cupy_allocator=lambda size: None)
    mr = SimpleNamespace(
        CudaMemoryResource=Plain, StatisticsResourceAdaptor=Statistics,
        TrackingResourceAdaptor=Tracking, get_current_device_resource=lambda: resource,
    )  # fmt: skip
    for name, module in {"rmm": SimpleNamespace(mr=mr), "rmm.allocators": SimpleNamespace(),
                         "rmm.allocators.cupy": theirs}.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    assert device.free_on_gpu() == 70  # RMM is there, and CuPy has its own
    asked.set_now[0] = theirs.rmm_cupy_allocator
    assert device.free_on_gpu() == free
    asked.set_now[0] = lambda size: None
    assert device.free_on_gpu() is None
