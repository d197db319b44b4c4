"""A folder to work in, for those who have installed the package and have no checkout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from neurotier.core.errors import SettingsError, TierError
from neurotier.core.files import made_whole, partial_of, remove_whatever
from neurotier.core.installed import ROOT
from neurotier.core.private import refuse_planted

LINKED = "workflow"
"""Rules and scripts are those of the library, always: a copy would stay behind when the package is renewed."""

COPIED = ("config", "profiles", "containers")
"""What users change."""


def lay_out(folder: Path) -> list[str]:
    """Lay out a folder with the workflow, its configuration and profiles; what to do next, in lines.

    In a folder that was laid out before, the workflow is that of this version afterwards, what is missing is copied,
    and what is there stays as it is.

    Raises
    ------
    SettingsError
        If something else is there by the name of the workflow.
    TierError
        If the folder cannot be written, or another user may have planted what leads there.
    """
    refuse_planted(folder, "folder to work in", "choose another folder")
    link, added = folder / LINKED, []
    if os.path.lexists(link) and not link.is_symlink():
        fix = "choose another folder; in a checkout there is nothing to lay out"
        raise SettingsError("is there already, and is no link to an installed workflow", where=str(link), fix=fix)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            if not os.path.lexists(folder / name):
                with made_whole(folder / name) as partial:
                    shutil.copytree(ROOT / name, partial, ignore=shutil.ignore_patterns("__pycache__"))
                added.append(name)
        if not link.is_symlink() or link.resolve() != (ROOT / LINKED).resolve():
            new = partial_of(link)
            remove_whatever(new)
            new.symlink_to(ROOT / LINKED)
            new.replace(link)
            added.append(LINKED)
    except shutil.Error as error:  # from copytree: what was copied, where to, and why not, of each file
        raise TierError(f"cannot be written: {error.args[0][0][2]}", where=str(folder)) from None
    except OSError as error:
        raise TierError(f"cannot be written: {error.strerror}", where=str(error.filename or folder)) from None
    return [
        f"{folder}: {', '.join(added)}" if added else f"{folder}: everything is there",
        f"Begin with: cd {folder} && snakemake --workflow-profile profiles/local --cores 2",
    ]
