"""Print the tables of a benchmark, or of all: ``python tests/benchmarks [NAME [WORD ...]]``.

A benchmark is a module of this folder with a function ``main``, to which the words after its name are given.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import ENVIRONMENT

NAMES = sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in ("__main__", "bench"))

if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)  # the environment's programs come first on PATH
    name, *words = sys.argv[1:] or [""]
    if name and name not in NAMES:
        sys.exit(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
    for each in [name] if name else NAMES:
        importlib.import_module(each).main(*words)
