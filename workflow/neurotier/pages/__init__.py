"""Pages of results, each a module with its declaration, ``PAGE``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

PAGES = ("advice", "bigbrain", "comparison", "daq", "ior", "probe", "published", "report", "staging", "sweep")
"""Names of the pages, which their modules and HTML files share."""


def page_called(name: str) -> Any:
    """The declaration of the page with this name."""
    return import_module(f"neurotier.pages.{name}").PAGE
