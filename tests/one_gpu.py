"""Ranks that share one GPU: the kernels and engines of several without several, and without NCCL.

``patched(monkeypatch)`` lets ``devices=[0, 0, 0]`` be that many ranks on GPU 0.
"""

from glp_rapids.propagation import options
from glp_rapids.propagation.engines import partitioned_gpu


def patched(monkeypatch):
    monkeypatch.setattr(partitioned_gpu, "chosen", "copies")
    monkeypatch.setattr(options, "devices_of", lambda devices: devices and tuple(devices))
