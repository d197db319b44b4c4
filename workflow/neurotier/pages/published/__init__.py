"""The page of target published."""

from neurotier.pages.published.page import PAGE

__all__ = ["PAGE"]
