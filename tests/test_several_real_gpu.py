"""Real graphs: two GPUs give the labels of a CPU, however they exchange them."""

import pytest
from test_real_graphs import compared
from test_several_gpu import needs_peer_access, needs_two

from glp_rapids import datasets
from glp_rapids.bench.agreement import RUNS
from glp_rapids.propagation.engines import partitioned_gpu


@needs_two
@pytest.mark.gpu
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", datasets.NAMES)
def test_two_gpus_give_the_labels_of_a_cpu(name, run, data, monkeypatch):
    def every_exchange():
        for exchange in partitioned_gpu.EXCHANGES:
            monkeypatch.setattr(partitioned_gpu, "chosen", exchange)
            yield {"devices": [0, 1]}

    needs_peer_access()
    compared(name, run, every_exchange())
