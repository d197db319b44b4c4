"""One file per process, written, flushed, and read back by another process: IOR's easy benchmark, run by fio."""
