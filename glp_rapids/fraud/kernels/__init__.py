"""Compiled kernels of the room, by device."""
