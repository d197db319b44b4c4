"""Watching a run in progress, from any node that sees its results folder: what is done, and how long it will take."""
