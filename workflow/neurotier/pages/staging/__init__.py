"""The page of target staging."""
