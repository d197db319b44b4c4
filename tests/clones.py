"""Clones of the demonstration's dataset, for tests of sources."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from configured import settings_at
from neurotier.core.private import private_folder
from neurotier.dataset.source import Dataset, obtain
from support import quiet

IMAGE = "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1_T1w.nii.gz"
SETTINGS = settings_at(dataset={"sites": ["SiteA"], "get_backoff_s": 0.2}).dataset
ONCE = dataclasses.replace(SETTINGS, get_attempts=1)


def cloned(source: Path | str, folder: Path, say: Callable[[str], None] = quiet, **changes: Any) -> Dataset:
    """A clone of a source, by settings that differ so from the usual ones."""
    settings = dataclasses.replace(SETTINGS, **changes)
    return obtain(settings, str(source), private_folder(folder) / "clones", say)
