"""The page of target bigbrain."""
