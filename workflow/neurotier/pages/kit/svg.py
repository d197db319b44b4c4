"""Figures as SVG that stand in a page: what their parts say on hover, and ids that are nobody else's.

Whatever draws says what a bar, a lane or a dot is with :func:`titled`; :func:`neurotier.pages.kit.style.save_figure`
makes ``<title>`` elements of it, which browsers show without any script::

    for bar, text in zip(axes.barh(lanes, times), texts, strict=True):
        titled(bar, text)
    titled(axes.add_collection(LineCollection(segments)), *texts)

What is drawn as pixels (``set_rasterized``) has no parts that could say anything: leave it untitled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.artist import Artist

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
MARK, BETWEEN = "title:", "\N{LINE SEPARATOR}"
"""How titles travel through matplotlib, which writes an artist's group id into the SVG and nothing else of ours."""

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def titled(artist: Artist, *texts: str) -> None:
    """Have something in a figure say what it is on hover.

    Parameters
    ----------
    artist
        A patch, a line or a collection, not rasterised.
    texts
        One for all of it; or one for each element of a collection, in order.
    """
    artist.set_gid(MARK + BETWEEN.join("".join(c if c.isprintable() else " " for c in text) for text in texts))


def finished(svg: str, name: str) -> str:
    """An SVG of matplotlib's with titles, and with ids that begin with the figure's name.

    Parameters
    ----------
    svg
        As matplotlib writes it.
    name
        Of the figure: no other on the same page has it.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314  # we have just written it
    prefix = re.sub(r"[^\w-]", "_", name) + "-"
    for part in root.findall(f"{{{SVG}}}metadata"):
        root.remove(part)
    parts = list(root.iter())
    named = [value for part in parts for key, value in part.attrib.items() if key == LINK or "url(#" in value]
    used = set(re.findall(r"(?:url\(|^)#([^)\n]+)", "\n".join(named), re.MULTILINE))
    for part in parts:
        identity = part.attrib.pop("id", "")
        if identity.startswith(MARK):
            add_titles(part, identity.removeprefix(MARK).split(BETWEEN))
        elif identity in used:
            part.set("id", prefix + identity)
        for key, value in part.attrib.items():
            if key == LINK and value.startswith("#"):
                part.set(key, f"#{prefix}{value[1:]}")
            elif "url(#" in value:
                part.set(key, value.replace("url(#", f"url(#{prefix}"))
        part.text = part.text if (part.text or "").strip() else None
        part.tail = "\n"
    return ElementTree.tostring(root, encoding="unicode")


def add_titles(group: Element, texts: Sequence[str]) -> None:
    """Give a group its title, or each of the shapes in it one."""
    defined = {id(shape) for part in group.iter(f"{{{SVG}}}defs") for shape in part.iter()}
    shapes = [part for part in group.iter() if part.tag in (f"{{{SVG}}}path", f"{{{SVG}}}use")]
    drawn = [shape for shape in shapes if id(shape) not in defined]
    for part, text in zip([group] if len(texts) == 1 else drawn, texts, strict=True):
        title = Element(f"{{{SVG}}}title")
        title.text, title.tail = text, "\n"
        part.insert(0, title)


def inline(path: Path) -> str:
    """A figure's SVG as it stands in a page; empty if it has not been drawn."""
    try:
        _, begin, rest = path.read_text(errors="replace").partition("<svg")
    except FileNotFoundError:
        return ""
    return begin + rest
