"""Kernels of a window on the CPU: sums by pair merged with what has come and gone."""
