"""The page of target probe."""
