"""The model: predicts how long a workload takes on given tiers, and what limits it, before it is run."""
