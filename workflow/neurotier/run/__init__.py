"""A run: its start and end, its plan and its jobs, what heals it, and campaigns of many runs."""
