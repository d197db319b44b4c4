"""The demonstration: a small DataLad dataset shaped like CoRR, made from one head, so that nothing is downloaded."""
