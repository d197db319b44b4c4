"""The DAQ buffer: writers at a fixed rate, which of them a tier holds, and the memory that the others would need."""
