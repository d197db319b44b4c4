"""Install conda packages into a folder, by py-rattler: FOLDER CHANNEL ... -- PACKAGE ...

Beside each package's own record, ``conda-meta/NAME.version`` gives its version.
"""

import asyncio
import os
import sys
from pathlib import Path

from rattler import VirtualPackage, install, solve


async def main() -> None:
    folder, *words = sys.argv[1:]
    at = words.index("--")
    records = await solve(sources=words[:at], specs=words[at + 1 :], virtual_packages=VirtualPackage.detect())
    await install(records=records, target_prefix=folder)
    for record in records:
        name = record.name.normalized
        Path(folder, "conda-meta", f"{name}.version").write_text(f"{record.version}\n")
        print(f"installed {name} {record.version}")


asyncio.run(main())
sys.stdout.flush()
os._exit(0)  # py-rattler's threads, where they outlive the interpreter by a moment, abort it: all is done by now
