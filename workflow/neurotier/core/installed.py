"""Where the program's own files are: in a checkout, or in the copy of one inside an installed package."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARY = PACKAGE.parent
"""The folder from which Python imports the package."""

IN_PACKAGE = PACKAGE / "checkout"
"""Where ``setup.py`` puts what lies next to the package in a checkout."""

IS_INSTALLED = IN_PACKAGE.is_dir()
ROOT = IN_PACKAGE if IS_INSTALLED else LIBRARY.parent
"""The folder that holds ``workflow/``, ``config/``, ``profiles/`` and ``containers/``."""


def search_path(variable: str = "PYTHONPATH", folder: object = "" if IS_INSTALLED else LIBRARY, unset: str = "") -> str:
    """A search path from the environment with a folder put first; as ``PYTHONPATH``, it leads to a checkout's package.

    One that is installed is found without it, and lies among others, which another Python (of a tool, or of a rule that
    is not ours) would import instead of its own.
    """
    known = os.environ.get(variable, unset).split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(filter(None, [str(folder), *known])))
