"""The page of target comparison."""

from neurotier.pages.comparison.page import PAGE

__all__ = ["PAGE"]
