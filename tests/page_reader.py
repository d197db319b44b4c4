"""A reader of the written pages, for their tests; and pages made from given tables."""

from __future__ import annotations

import csv
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from neurotier.core.tables import Row, columns, write_plain
from neurotier.pages import page_called
from neurotier.pages.kit.page import COMPANION_FILES, Data

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Reader(HTMLParser):
    """Addresses, tags, ids and visible text of a page; complains about tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.alts: list[str] = []
        self.words: list[str] = []
        self.open_words: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [(key, value or "") for key, value in attrs if key in ("src", "href", "xlink:href")]
        self.ids += [value or "" for key, value in attrs if key == "id"]
        alternative = "aria-label" if ("role", "img") in attrs else "alt"
        self.alts += [value or "" for key, value in attrs if key == alternative]
        assert not any(key.startswith("on") for key, _ in attrs), "no inline handlers"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)
            if "details" not in self.open:
                self.open_words.append(data)

    @property
    def text(self) -> str:
        return one_line(self.words)

    @property
    def open_text(self) -> str:
        """The text that is visible without unfolding anything."""
        return one_line(self.open_words)


def one_line(words: list[str]) -> str:
    return " ".join(" ".join(words).split())


def read(page: Path) -> Reader:
    """The content of a page, all of whose tags must match."""
    reader = Reader()
    reader.feed(page.read_text())
    assert not reader.open
    return reader


def page_of(room: str, folder: Path, settings: Any = None, **tables: list[Row]) -> tuple[list[str], Reader]:
    """Make a page from given tables; returns what it says first, and its content.

    Parameters
    ----------
    room
        Of the page.
    folder
        Where the page is made, and in a folder called like it its tables and figures.
    settings
        What the page is given besides.
    **tables
        Rows by the name of their table; cells that a row lacks are empty.
    """
    page = page_called(room)
    whole = {name: [{column: row.get(column) for column in columns(name)} for row in tables[name]] for name in tables}
    for name, file in page.inputs(folder).items():
        write_plain(file, whole[name] or [dict.fromkeys(columns(name))])
    said = page.render(Data(whole, settings), folder, settings)
    reader = read(folder / f"{room}.html")
    drawn = {path.stem for path in (folder / room / "figures").glob("*.svg")}
    assert all((folder / room / "figures" / f"{name}.{kind}").exists() for name in drawn for kind in COMPANION_FILES)
    for kind, address in reader.addresses:
        assert address.startswith(("#", "data:")) or (folder / address).exists(), (kind, address)
    return said, reader


def read_plain(path: Path) -> list[dict[str, str]]:
    """The table behind a figure, as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))
