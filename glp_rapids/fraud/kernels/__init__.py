"""Compiled kernels of the room: sums of a window, residuals of scores."""
