"""Advice: how long a run will take on each tier, what limits it, and whether it fits, before it is run."""
