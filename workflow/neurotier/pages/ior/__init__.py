"""The page of target ior."""
