"""The paper's worded claims, each held against its raw logs."""
