"""Which labels of its memory a vertex keeps in speaker-listener propagation, on a GPU.

Each row is sorted, but not all labels of all vertices together, as with whole arrays. Launches: two
of a thread a vertex, which goes through its row once for each label that it keeps. No shared
memory; registers (compute capability 9.0): 31 to count what is kept, 36 to write it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.common.scans import exclusive_sums

Array = Any

# A label comes after another if it was heard less often, or as often and is larger. So once one is
# too rare, all that would follow are.
_GO_THROUGH = """
template <class T, class Keep>
__device__ int glp_go_through(
    const T* row, long long width, double heard, long long most, double threshold, Keep keep
) {
    long long first = 0, count_before = width + 1;
    T label_before = -1;
    while (first < width && row[first] < 0) ++first;
    int kept = 0;
    while (kept < most) {
        long long best_count = 0;
        T best = -1;
        for (long long j = first, end; j < width; j = end) {
            for (end = j + 1; end < width && row[end] == row[j]; ++end) {}
            long long count = end - j;
            bool after = count < count_before || (count == count_before && row[j] > label_before);
            if (after && count > best_count) {
                best_count = count;
                best = row[j];
            }
        }
        if (best_count == 0 || (kept > 0 && best_count / heard < threshold)) break;
        keep(kept, best, best_count / heard);
        ++kept;
        count_before = best_count;
        label_before = best;
    }
    return kept;
}
"""


def strongest(
    memory: Array, heard: Array, max_labels: int, threshold: float
) -> tuple[Array, Array, Array]:
    """List rows of a cover: vertex, label and frequency, the strongest of a vertex first.

    ``memory``: the labels that each vertex has heard, a row each, negative where it has not.
    """
    import cupy

    size, width = memory.shape
    ordered = cupy.sort(memory, axis=1)
    heard = heard.astype(np.float64)
    given = ordered, np.int64(width), heard, np.int64(min(max_labels, width)), float(threshold)
    number_kept, write = _kernels()
    begins = exclusive_sums(number_kept(*given, cupy.empty(size, np.int32)))
    total = int(begins[-1])
    vertex, label = cupy.empty(total, np.int64), cupy.empty(total, np.int64)
    frequency = cupy.empty(total, np.float64)
    write(*given, begins, vertex, label, frequency, size=size)
    return vertex, label, frequency


@functools.cache
def _kernels() -> tuple[Any, Any]:
    import cupy

    given = "raw T ordered, int64 width, raw float64 heard, int64 most, float64 threshold"
    of_row = "&ordered[i * width], width, heard[i], most, threshold"
    return (
        cupy.ElementwiseKernel(
            given, "int32 kept", f"kept = glp_go_through({of_row}, [](int, T, double) {{}})",
            "glp_number_kept", preamble=_GO_THROUGH,
        ),
        cupy.ElementwiseKernel(
            f"{given}, raw int64 begins",
            "raw int64 vertex, raw int64 label, raw float64 frequency",
            f"""
            long long begin = begins[i];
            auto keep = [&](int rank, T one, double share) {{
                vertex[begin + rank] = i;
                label[begin + rank] = one;
                frequency[begin + rank] = share;
            }};
            glp_go_through({of_row}, keep)
            """,
            "glp_write_kept", preamble=_GO_THROUGH,
        ),
    )  # fmt: skip
