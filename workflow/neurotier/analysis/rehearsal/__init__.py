"""Rehearsals: a pipeline's load on storage and processors, replayed from a description without the pipeline."""
