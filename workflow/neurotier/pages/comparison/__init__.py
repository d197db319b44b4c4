"""The page of target comparison."""
