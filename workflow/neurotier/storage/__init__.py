"""What a tier can do, measured by fio: the probe, grids of requests, and the page cache in between."""
