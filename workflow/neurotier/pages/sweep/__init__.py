"""The page of target sweep."""
