"""The DAQ buffer: writers at a fixed rate, how many a tier keeps up with, and the memory that more would need."""
