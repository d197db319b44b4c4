"""Sweeps: grids of block size, processes, pattern and queue depth."""
