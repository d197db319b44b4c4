"""Rehearsals: a described pipeline's load on storage and processors, done again without the pipeline."""
