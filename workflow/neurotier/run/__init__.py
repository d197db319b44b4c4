"""A run: its start and end, its plan and its jobs, repair of its results, and campaigns of many runs."""
