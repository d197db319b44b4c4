"""The page of target advice."""
