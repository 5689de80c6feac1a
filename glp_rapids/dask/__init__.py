"""Communities and scores on a Dask cluster: dask frames of edges in, dask frames out."""

from __future__ import annotations

try:
    import distributed  # noqa: F401 (all below needs it)
except ImportError as error:
    raise ImportError(
        'glp_rapids.dask needs Dask: pip install "dask[dataframe]" distributed'
    ) from error

from glp_rapids.dask.cluster import WorkerLost
from glp_rapids.dask.diversity import structural_diversity, top_structural_diversity
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
    "structural_diversity",
    "top_structural_diversity",
]
