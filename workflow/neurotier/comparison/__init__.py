"""Comparison: runs of a campaign, of other results folders and of the published experiment in the same tables."""
