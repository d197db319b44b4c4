"""matplotlib's parts, each imported when it is first used.

The rules read the names of figures whenever Snakemake starts, and importing matplotlib takes longer than that.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = ("", ".collections", ".figure", ".lines", ".patches", ".ticker")


def __getattr__(name: str) -> Any:
    """A part of matplotlib's, by its name."""
    for module in () if name.startswith("_") else MODULES:
        found = import_module(f"matplotlib{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(name)
