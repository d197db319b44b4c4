"""matplotlib's parts, each imported when it is first used.

The rules read the names of figures whenever Snakemake starts, and importing matplotlib takes longer than that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib import colormaps, rc_context, rcdefaults, rcParams
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

MODULES = ("", ".artist", ".axes", ".figure", ".lines", ".patches", ".ticker")

__all__ = [
    "Artist",
    "Axes",
    "Figure",
    "Line2D",
    "LogLocator",
    "MaxNLocator",
    "NullFormatter",
    "NullLocator",
    "Patch",
    "StrMethodFormatter",
    "colormaps",
    "rcParams",
    "rc_context",
    "rcdefaults",
]


def __getattr__(name: str) -> Any:
    """A part of matplotlib's, by its name."""
    modules = [f"matplotlib{module}" for module in MODULES if name in __all__]
    for module in map(import_module, modules):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)
