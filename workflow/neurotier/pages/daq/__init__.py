"""The page of target daq."""
