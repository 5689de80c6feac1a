"""Label propagation on a Dask cluster: dask frames of edges in, dask frames of communities out."""

from __future__ import annotations

from glp_rapids.dask.cluster import WorkerLost
from glp_rapids.dask.variants import (
    label_propagation,
    layered_label_propagation,
    propagate,
    seeded_label_propagation,
    speaker_listener,
)

__all__ = [
    "WorkerLost",
    "label_propagation",
    "layered_label_propagation",
    "propagate",
    "seeded_label_propagation",
    "speaker_listener",
]
