"""Seeing a run while it goes on, from any node that sees its results folder: what is done, how long it will take."""
