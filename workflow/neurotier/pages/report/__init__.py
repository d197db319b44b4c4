"""The run report."""

from neurotier.pages.report.page import PAGE

__all__ = ["PAGE"]
