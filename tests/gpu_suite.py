"""The tests that need a GPU, in parts, for a machine with one.

    python tests/gpu_suite.py                   every part, one after the other
    python tests/gpu_suite.py compressed        one part; its name, and pytest's options after it

On an H200 beside 16 CPU cores all parts together took 264 s without what is exhaustive
(``-m "gpu and not exhaustive"``), with the kernels of the variants compiled before. Most of the
time is compiling, which 14 processes share through one cache (NUMBA_CACHE_DIR, if it is to outlive
the machine's home).
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {
    "propagation": [
        "label_propagation", "seeded", "options", "ordering", "scores", "sums", "metrics",
        "id_search", "launch", "metrics_networkx", "pending_gpu", "slack", "synthetic",
        "warm_start_gpu",
    ],
    "programs": [
        "first_calls_gpu", "gpu_memory", "gpu_safety", "program", "program_bounds",
        "program_errors", "raising", "shipped", "small_sums", "streams_gpu", "traits",
    ],
    "strategies": ["strategies", "real_graphs"],
    "streamed": ["streamed_gpu", "streamed_gpu_limit"],
    "hybrid": ["hybrid_gpu"],
    "several": ["several_gpu", "several_limit_gpu", "several_real_gpu", "several_streamed_gpu"],
    "dask": ["dask_gpu"],
    "compressed": [
        "compressed_audit", "compressed_cuda", "compressed_entropy", "compressed_file",
        "compressed_graph", "compressed_ids", "compressed_propagation_gpu", "compressed_real",
        "compressed_symmetry", "webgraph",
    ],
    "diversity": [
        "diversity", "diversity_cugraph_gpu", "diversity_engines", "diversity_exit",
        "ego_networks", "whole_graph",
    ],
    "traversal": ["traversal_gpu"],
    "communities": ["call_memory", "contract", "multilevel", "shipped_multilevel"],
    "frames": [
        "account_scores", "bench_traversal", "bench_window", "cli_warmup", "copies", "cores",
        "docstrings", "edges", "explain", "features", "fraud", "fraud_gpu", "id_words",
        "ids_asked", "ingest", "ingest_cugraph_gpu", "ingest_gpu", "ingest_gpu_cupy",
        "ingest_gpu_refused", "known", "mapped", "monitor", "monitor_folder", "monitor_options",
        "networkx_propagation", "other_libraries", "row_kernels", "score_progress", "window",
        "window_clock",
        "window_graph", "window_ids", "window_kept", "window_moves",
    ],
}  # fmt: skip
# Whose tests are in groups for a process each: of one kernel, which is then compiled once, or of
# all that need two GPUs.
GROUPED = ("streamed", "hybrid", "several", "dask")
# Processes that share one GPU; two threads each, as there are CPU cores for no more.
OPTIONS = ["-m", "gpu", "-n", "14", "--dist", "worksteal", "-p", "no:cacheprovider",
           "-p", "no:benchmark"]  # fmt: skip


def files_of(part):
    return [HERE / f"test_{name}.py" for name in PARTS[part]]


def main(*arguments):
    parts = [argument for argument in arguments if argument in PARTS]
    others = [argument for argument in arguments if argument not in PARTS]
    environment = {"NUMBA_NUM_THREADS": "2", **os.environ}
    failed = []
    for part in parts or PARTS:
        print(f"=== {part}", flush=True)
        grouped = ["--dist", "loadgroup"] if part in GROUPED else []
        command = [sys.executable, "-m", "pytest", *OPTIONS, *grouped, *others, *files_of(part)]
        if subprocess.run(command, env=environment, cwd=HERE.parent).returncode:
            failed.append(part)
    return f"failed: {', '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
