"""Templates: names in braces in the arguments of an app, filled in when it is called.

``--nprocs {threads}`` says what the job has, whatever that is today: a participant on four cores is told four. A brace
that is meant as such is doubled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from neurotier.core.errors import SettingsError

ALWAYS = ("threads", "mem_mb", "mem_gb", "work")
"""Names that every level of an app knows: cores, memory in MB and in whole GB, the work folder."""


def check_templates(texts: Sequence[str], known: Collection[str], where: str) -> set[str]:
    """Names in the braces of some texts, each of which must be known.

    Raises
    ------
    SettingsError
        If a brace stands alone, there is anything but a name between two, or one is not known, with the names there
        are.

    Examples
    --------
    >>> check_templates(["--mem={mem_gb}G", '{{"a": 1}}'], ALWAYS, "app.arguments")
    {'mem_gb'}
    """
    from string import Formatter

    where, fix, used = f"config key {where}", "write {{ and }} for braces that are meant as such", set[str]()
    for text in texts:
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise SettingsError(f"{text!r}: {error}", where=where, fix=fix) from None
        for _, name, form, conversion in parsed:
            if name is None:
                continue
            if form or conversion or not name.isidentifier():
                raise SettingsError(f"{text!r} has something other than a name in braces", where=where, fix=fix)
            if name not in known:
                names = ", ".join(f"{{{one}}}" for one in known)
                fix = f"use one of {names}; write {{{{ for a brace"
                raise SettingsError(f"{text!r}: nothing is called {{{name}}} here", where=where, fix=fix)
            used.add(name)
    return used


def fill(texts: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Texts with their names replaced.

    >>> fill(["--mem", "{mem_mb}", '{{"a": 1}}'], {"mem_mb": 8000})
    ['--mem', '8000', '{"a": 1}']
    """
    return [text.format_map(values) for text in texts]
