"""What a bar says while the pointer rests on it: titles in the SVG, which need no script.

matplotlib writes no titles, but it writes the address of an artist around what it draws: texts are set as addresses
of a scheme of our own, and become titles when the file is saved. Say participant (or condition), phase and seconds::

    for bar, text in zip(axes.barh(lanes, times), texts, strict=True):
        bar.set_url(hover(text))
    axes.add_collection(LineCollection(segments, urls=[hover(text) for text in texts]))

What is drawn as pixels (``set_rasterized``) says nothing.
"""

from __future__ import annotations

import re

SCHEME = "hover:"


def hover(text: str) -> str:
    """An address for ``set_url`` or ``set_urls`` of an artist that is to say a text."""
    return f"{SCHEME}{text}"


def with_titles(svg: str) -> str:
    """An SVG in which such addresses are titles.

    >>> with_titles('<a xlink:href="hover:1.5 s" target="_blank"><path/></a>')
    '<g><title>1.5 s</title><path/></g>'
    """
    return re.sub(rf'<a xlink:href="{SCHEME}([^"]*)"[^>]*>(.*?)</a>', r"<g><title>\1</title>\2</g>", svg, flags=re.S)
