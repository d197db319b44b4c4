"""The page of target bigbrain."""

from neurotier.pages.bigbrain.page import PAGE

__all__ = ["PAGE"]
