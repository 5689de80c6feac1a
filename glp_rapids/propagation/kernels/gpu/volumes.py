"""How many vertices say each label, counted once before the first sweep.

Launch shape: a thread a vertex, any blocks. No shared memory; 10 registers. Sorting or
`bincount` would take 40 bytes a vertex beside the labels, where lists are streamed under a limit.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cuda import cuda


def count_labels(labels, volume):
    """Add each vertex to the volume of its label; negative ones are silence."""
    v = np.int64(cuda.grid(1))
    if v < labels.size:
        label = np.int64(labels[np.uint64(v)])
        if label >= 0:
            cuda.atomic.add(volume, np.uint64(label), np.int64(1))
