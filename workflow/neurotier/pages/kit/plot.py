"""matplotlib's parts, each imported when it is first used.

A page asks the modules of its figures only what they find, and importing matplotlib takes longer than writing a page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib import colormaps as colormaps
    from matplotlib.artist import Artist as Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.collections import LineCollection as LineCollection
    from matplotlib.colors import LogNorm as LogNorm
    from matplotlib.figure import Figure as Figure
    from matplotlib.lines import Line2D as Line2D
    from matplotlib.patches import Patch as Patch
    from matplotlib.patches import Rectangle as Rectangle
    from matplotlib.ticker import FixedLocator as FixedLocator
    from matplotlib.ticker import FuncFormatter as FuncFormatter
    from matplotlib.ticker import LogLocator as LogLocator
    from matplotlib.ticker import MaxNLocator as MaxNLocator
    from matplotlib.ticker import NullFormatter as NullFormatter
    from matplotlib.ticker import NullLocator as NullLocator
    from matplotlib.ticker import StrMethodFormatter as StrMethodFormatter

MODULES = {
    "matplotlib": ("colormaps",),
    "matplotlib.artist": ("Artist",),
    "matplotlib.axes": ("Axes",),
    "matplotlib.collections": ("LineCollection",),
    "matplotlib.colors": ("LogNorm",),
    "matplotlib.figure": ("Figure",),
    "matplotlib.lines": ("Line2D",),
    "matplotlib.patches": ("Patch", "Rectangle"),
    "matplotlib.ticker": (
        *("FixedLocator", "FuncFormatter", "LogLocator", "MaxNLocator"),
        *("NullFormatter", "NullLocator", "StrMethodFormatter"),
    ),
}


def __getattr__(name: str) -> Any:
    """A class of matplotlib's, by its name."""
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(name)
