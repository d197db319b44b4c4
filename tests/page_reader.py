"""A reader of the pages that are written, for their tests."""

from __future__ import annotations

from html.parser import HTMLParser

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

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())
