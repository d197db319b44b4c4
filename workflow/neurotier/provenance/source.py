"""The source of derivatives: the raw dataset of a site, as it is registered in their dataset (YODA).

It is registered by address and commit, and not cloned again: ``datalad get`` installs it where it is wanted.
"""

from __future__ import annotations

from typing import NamedTuple

from neurotier.core.credentials import without_credentials
from neurotier.core.errors import InputError, SettingsError
from neurotier.dataset.addresses import refusal
from neurotier.dataset.datalad_environment import ask_git
from neurotier.dataset.sites import commit, identifier_of
from neurotier.dataset.source import Dataset

RAW = "sourcedata/raw"
"""Where the raw dataset lies in a dataset of derivatives."""


class Raw(NamedTuple):
    """A raw dataset to register: from where it can be cloned, the commit that was analysed, and its DataLad identifier,
    which is empty if it has none."""

    address: str
    commit: str
    identifier: str


def check_source(dataset: Dataset) -> None:
    """Raise :class:`SettingsError` if a dataset cannot be registered as a source."""
    if dataset.kind == "folder":
        raise SettingsError(
            f"a plain folder ({dataset.path}) has no commit that derivatives could name as their source",
            where="config key results_dataset",
            fix="make the folder a DataLad dataset, or set results_dataset: false",
        )


def raw_of(dataset: Dataset, site: str) -> Raw:
    """The raw dataset of a site, by its clone on the dataset tier.

    Raises
    ------
    InputError
        If it is gone, or has no address that may be handed on.
    """
    clone = dataset.path / site
    here = commit(clone)
    if here is None:
        raise InputError("is not there any more", where=str(clone), fix="start with --forcerun clone_dataset")
    address = without_credentials((ask_git(clone, "config", "remote.origin.url") or "").strip())
    if not address or refusal(address):
        raise InputError(f"has no address to register: {refusal(address) or 'no remote is named origin'}", str(clone))
    indexed = dataset.sites.get(site, {}).get("version")  # results that share the clone may have moved it since
    return Raw(address, indexed or here, identifier_of(clone))
