"""What a tier can do: the probe, storage workloads, and the page cache, measured mostly by fio."""
