"""The model: how long a workload takes on a tier, and what limits it, before it is run."""
