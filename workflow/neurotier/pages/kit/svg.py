"""Figures as SVG that stand in a page, beside others."""

from __future__ import annotations

import re
from pathlib import Path


def with_own_ids(svg: str, name: str) -> str:
    """An SVG of matplotlib's whose ids begin with the figure's name, without comments and metadata.

    matplotlib gives the same glyphs and groups the same ids in every figure, and a page has several.

    >>> with_own_ids('<g id="a"><use xlink:href="#a" clip-path="url(#b)"/></g><!-- 2 -->', "gantt")
    '<g id="gantt-a"><use xlink:href="#gantt-a" clip-path="url(#gantt-b)"/></g>'
    """
    prefix = re.sub(r"[^\w-]", "_", name) + "-"
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'( id="|xlink:href="#|url\(#)', rf"\1{prefix}", svg)
    return re.sub(r">\s+<", ">\n<", svg)


def inline(path: Path) -> str:
    """A figure's SVG as it stands in a page; empty if it has not been drawn."""
    try:
        _, begin, rest = path.read_text(errors="replace").partition("<svg")
    except FileNotFoundError:
        return ""
    return begin + rest
