"""Label propagation for RAPIDS: fast, exact and deterministic, on GPUs and on CPUs."""

__version__ = "0.1.0"
