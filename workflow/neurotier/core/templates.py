"""Templates: names in braces in the arguments of an app, filled in when it is called.

``--nprocs {threads}`` says what the job has, whatever that is today: a participant on four cores is told four. A brace
that is meant as such is doubled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from neurotier.core.errors import SettingsError

ALWAYS = ("threads", "mem_mb", "mem_gb", "work")
"""Names that every level of an app knows: cores, memory in MB and in whole GB, the work folder."""


def names_in(text: str, where: str) -> list[str]:
    """Names in the braces of a text, in order.

    Raises
    ------
    SettingsError
        If a brace stands alone, or there is anything but a name between two.

    Examples
    --------
    >>> names_in("--mem={mem_gb}G", "app.arguments")
    ['mem_gb']
    >>> names_in('{{"a": 1}}', "app.arguments")
    []
    """
    from string import Formatter

    where, fix = f"config key {where}", "write {{ and }} for braces that are meant as such"
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise SettingsError(f"{text!r}: {error}", where=where, fix=fix) from None
    names = []
    for _, name, form, conversion in parsed:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise SettingsError(f"{text!r} has something other than a name in braces", where=where, fix=fix)
        names.append(name)
    return names


def check_templates(texts: Sequence[str], known: Collection[str], where: str) -> set[str]:
    """Names that some texts use, each of which must be known.

    Raises
    ------
    SettingsError
        If one is not known, with the names there are.
    """
    used = {name: text for text in texts for name in names_in(text, where)}
    for name, text in used.items():
        if name not in known:
            raise SettingsError(
                f"{text!r}: nothing is called {{{name}}} here",
                where=f"config key {where}",
                fix=f"use one of {', '.join(f'{{{one}}}' for one in known)}; write {{{{ for a brace",
            )
    return set(used)


def fill(texts: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Texts with their names replaced.

    >>> fill(["--mem", "{mem_mb}", '{{"a": 1}}'], {"mem_mb": 8000})
    ['--mem', '8000', '{"a": 1}']
    """
    return [text.format_map(values) for text in texts]
