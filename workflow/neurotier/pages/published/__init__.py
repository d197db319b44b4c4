"""The page of target published."""
