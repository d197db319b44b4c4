"""Storage sweeps with fio: grids of block size, processes, pattern and queue depth, measured on any tier."""
