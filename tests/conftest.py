import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from glp_rapids.device import gpu_available

# Compiling may take seconds, and only the first example of a kind pays for it.
settings.register_profile(
    "default", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "gpu" and not gpu_available():
        pytest.skip("no CUDA device with CuPy and numba-cuda here")
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
