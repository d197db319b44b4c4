"""What containers are to see, such as a licence file, is looked for before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

from neurotier.analysis.app import filter_path
from neurotier.core.errors import SettingsError
from neurotier.core.settings import Settings

FILTER_BYTES = 1_000_000
"""Largest size of a BIDS filter file: a few lines that a person has written."""


def check_container_inputs(settings: Settings, elsewhere: bool) -> None:
    """Look for the files and folders that the configuration has containers see.

    Parameters
    ----------
    settings
        The configuration.
    elsewhere
        Whether containers run on the nodes of a cluster: what is bound need not be here, and the first one looks.

    Raises
    ------
    ContainerError
        If a bind does not exist.
    SettingsError
        If the BIDS filter file is missing or no JSON object, or the source of a cache is no folder.
    """
    if settings.image is None:
        return
    if not elsewhere:
        from neurotier.containers.run import further_binds

        further_binds(settings.containers.binds)
    if settings.app.image:
        check_filter_file(settings.app.filter_file)
        for name, cache in settings.app.caches.items():
            if not Path(cache["source"]).expanduser().is_dir():
                where = f"config key app.caches.{name}.source: {cache['source']}"
                raise SettingsError("there is no such folder", where=where, fix="correct the path")


def check_filter_file(text: str | None) -> None:
    """Raise :class:`SettingsError` unless a BIDS filter file, if there is one, is a JSON object."""
    if text is None:
        return
    where, path = f"config key app.filter_file: {text}", filter_path(text)
    if not path.is_file():
        raise SettingsError("no such file", where=where, fix="correct the path")
    try:
        with path.open("rb") as file:
            content = file.read(FILTER_BYTES + 1)
        filters = json.loads(content)
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", where=where, fix="correct its permissions") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"is no JSON: {error}", where=where, fix="correct it") from None
    if not isinstance(filters, dict) or len(content) > FILTER_BYTES:
        fix = 'write {"SUFFIX": {"ENTITY": VALUE}}, as in the documentation of the app'
        raise SettingsError("holds no filters", where=where, fix=fix)
