"""Tools that run on a T1w image, and how each is called on the host and in a container.

A tool takes a checked head and returns a mask; everything else (checks, brain image, sidecars) is the same for all.
A program that writes the mask of one image needs no class: the configuration says how :class:`Program` calls it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.analysis.rehearsal.tool import Rehearsal
from neurotier.analysis.tool import Tool
from neurotier.core.app_settings import ProgramSettings
from neurotier.core.errors import InputError, KilledError, ToolError, one_line
from neurotier.core.foreign import read_text
from neurotier.core.settings import ToolSettings
from neurotier.meter.function import run_in_phase
from neurotier.meter.tree import describe_exit, shell_code

VERSION_BYTES = 200
LOG_END_BYTES = 64 << 10
"""Length of the end of a log in which the last line is looked for."""


class MaskTool(Tool):
    """A tool that makes masks: it alone needs nibabel."""

    def load(self) -> None:
        import neurotier.analysis.images  # noqa: F401

    def checked_head(self, image: Path, name: str) -> Any:
        from neurotier.analysis.images import load_head

        return load_head(image, name)


@dataclass(frozen=True)
class Program(MaskTool):
    """A program on PATH or in an image, called for one image as the configuration says; ``bet`` is one."""

    name: str
    settings: ProgramSettings

    @property
    def environment(self) -> dict[str, str]:
        return self.settings.environment

    @property
    def version_command(self) -> list[str]:
        return shlex.split(self.settings.version or "")

    @property
    def memory_mb(self) -> tuple[int, int]:
        return self.settings.memory_mb, 40  # image and mask in neurotier's own process

    @property
    def threads(self) -> int:
        return self.settings.threads

    def work_bytes(self, images: int, input_bytes: int) -> int:
        return int(self.settings.work_factor * input_bytes)

    def command(self, image: str, folder: str) -> list[str]:
        given = {"input": image, "output": folder, "threads": self.threads}
        return [word.format(**given) for word in shlex.split(self.settings.command)]

    def version(self) -> str:
        program, where = self.command("", "")[0], f"tool {self.name!r}"
        file = shutil.which(program)
        if file is None:
            fix = f"install or load it, or name its image in tool.{self.name}.image and add --sdm apptainer"
            raise ToolError(
                f"{program} is not on PATH" if "/" not in program else f"no {program}", where=where, fix=fix
            )
        with self.starting(where):
            if not self.version_command:
                with open(file, "rb") as opened:
                    return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()[:12]}"
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "env": {**os.environ, **self.environment}}
            done = subprocess.run(self.version_command, capture_output=True, check=False, **options)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace")
            raise failed(shlex.join(self.version_command), shell_code(done.returncode), said, where)
        return one_line(done.stdout[-VERSION_BYTES:].decode(errors="replace")) or "unknown"

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> Any:
        os.environ.update(self.environment)
        with log.open("ab") as file, self.starting(name):
            code = run_in_phase(self.command(str(image), str(folder)), log=file, cwd=str(folder))
        if code != 0:
            raise failed(self.name, code, end_of(log), name)
        return self.read_mask(folder, "", head, name)

    @contextlib.contextmanager
    def starting(self, name: str) -> Iterator[None]:
        """Say of a program that cannot be started why: it may be gone, or a script without its first line."""
        try:
            yield
        except OSError as error:
            raise ToolError(f"{self.name} cannot be started ({error.strerror}: {error.filename})", where=name) from None

    def read_mask(self, folder: Path, below: str, head: Any, name: str) -> Any:
        from neurotier.analysis.images import check_mask

        written = self.settings.mask or self.settings.brain or ""
        return check_mask(folder, str(Path(below, written)), head, self.name, name, of_brain=not self.settings.mask)


@dataclass(frozen=True)
class BrainExtractor(MaskTool):
    """brainextractor (MIT licence): the algorithm of bet in Python."""

    fractional_threshold: float
    iterations: int
    name = "brainextractor"
    cache_variable = "NUMBA_CACHE_DIR"
    version_command = ("python3", "-c", "import importlib.metadata as m; print(m.version('brainextractor'))")
    memory_mb = (500, 260)
    """Measured: 0.9 to 1.2 GB for heads of 1 mm, 3.9 GB for one of 0.67 mm."""

    def command(self, image: str, folder: str) -> list[str]:
        options = [f"{self.fractional_threshold!r}", str(self.iterations)]
        return ["python3", "-c", PROGRAM.read_text(), image, f"{folder}/{MASK}", *options]

    def read_mask(self, folder: Path, below: str, head: Any, name: str) -> Any:
        from neurotier.analysis.images import check_mask

        return check_mask(folder, f"{below}/{MASK}", head, self.name, name)

    def version(self) -> str:
        import importlib.metadata

        try:
            return importlib.metadata.version("brainextractor")
        except importlib.metadata.PackageNotFoundError:
            raise ToolError("not installed", where="tool 'brainextractor'", fix="pip install brainextractor") from None

    def warm_up(self) -> None:
        """Compile its numba functions into the cache, or the first 25 jobs would all do so at once."""
        from brainextractor import BrainExtractor as Extractor

        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            extractor = Extractor(img=smallest_head())
            extractor.run(iterations=2)
            extractor.compute_mask()

    def load(self) -> None:
        import brainextractor  # noqa: F401

        super().load()

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> Any:
        from brainextractor import BrainExtractor as Extractor

        from neurotier.analysis.images import as_mask

        with log.open("a") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            try:
                extractor = Extractor(img=head, bt=self.fractional_threshold)
                extractor.run(iterations=self.iterations)
                data = extractor.compute_mask()
            except (ArithmeticError, IndexError, TypeError, ValueError) as error:
                raise ToolError(f"brainextractor failed: {type(error).__name__}: {error}", where=name) from None
        return as_mask(data, self.name, name)


@dataclass(frozen=True)
class Noop(Tool):
    """No analysis: ``true`` or ``sleep`` per image, to measure staging and neurotier alone."""

    sleep_s: float
    name = "noop"

    def command(self, image: str, folder: str) -> list[str]:
        return ["sleep", f"{self.sleep_s:g}"] if self.sleep_s else ["true"]

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> None:
        run_in_phase(self.command(str(image), str(folder)), cwd=str(folder))


PROGRAM = Path(__file__).with_name("brainextractor_program.py")
MASK = "brain_mask.nii.gz"
"""The mask that it writes."""

TOOLS: Mapping[str, type[Any]] = {"brainextractor": BrainExtractor, "noop": Noop, Rehearsal.name: Rehearsal}
"""All but programs."""


def make_tool(settings: ToolSettings) -> Tool:
    """The tool that the settings name, with its options."""
    if settings.name not in TOOLS:
        return Program(settings.name, ProgramSettings(**settings.options))
    tool: Tool = TOOLS[settings.name](**settings.options)
    return tool


def smallest_head() -> Any:
    """A blurred ball of 31 x 31 x 31 voxels of 4 mm: enough for a tool to compile its functions."""
    import nibabel as nib
    import numpy as np

    axis = np.linspace(-60, 60, 31)
    distance_mm = np.sqrt(sum(part**2 for part in np.meshgrid(axis, axis, axis, indexing="ij")))
    data = np.asfortranarray(100.0 * (distance_mm < 40) + distance_mm / 60)  # as images from files are
    return nib.Nifti1Image(data, np.diag([4.0, 4.0, 4.0, 1.0]))


def failed(tool: str, code: int, said: str, name: str) -> ToolError:
    """The error for a tool that ended with an exit code other than 0, with the last line that it printed."""
    error = KilledError if code == KilledError.exit_code else ToolError
    return error(f"{tool} failed ({describe_exit(code)}): {last_line(said)}", where=name)


def end_of(log: Path) -> str:
    """The end of a job's log, or why it cannot be read, if the tool has replaced it by something else."""
    try:
        return read_text(log.parent, log.name, LOG_END_BYTES, from_end=True)
    except FileNotFoundError:
        return ""
    except InputError as error:
        return f"its log {error.what}"


def last_line(said: str) -> str:
    """The last line that a tool printed."""
    lines = [line for line in re.split(r"[\r\n]+", said) if line.strip()]
    return lines[-1].strip()[:200] if lines else "it printed nothing"
