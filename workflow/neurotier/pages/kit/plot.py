"""Parts of matplotlib, each imported when it is first used.

Whenever Snakemake starts, the rules read the names of figures, which takes less time than importing matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = ("", ".collections", ".figure", ".lines", ".patches", ".ticker")


def __getattr__(name: str) -> Any:
    """The part of matplotlib with this name."""
    for module in () if name.startswith("_") else MODULES:
        found = import_module(f"matplotlib{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(name)
