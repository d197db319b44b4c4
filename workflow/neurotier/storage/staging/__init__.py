"""Staging: writers hand data to readers, time step by time step, through a service whose store is a file on a tier."""
