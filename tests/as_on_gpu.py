"""Arrays of the host that look like those of a GPU, for what moves them without kernels."""

from types import SimpleNamespace

import numpy as np


class OnGpu(np.ndarray):
    """An array of the host that looks like one of CuPy."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.array(self)


def on_gpu(values, dtype=np.int64):
    return np.array(values, dtype).view(OnGpu)


def empty(size, dtype):
    return np.empty(size, dtype).view(OnGpu)
