"""Staging: writers hand readers a time step after the other through a service whose store is a file on a tier."""
