"""Run the kernels of transactions in Numba's simulator; print which results differ from NumPy's.

Run by test_row_kernels.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

import numpy as np
import simulated_threads
from row_kernels import differing

from glp_rapids.jit import items

items.THREADS = 8  # every simulated thread is a thread of the host
simulated_threads.let_threads_sleep()

print(differing(np.asarray, np.asarray))
