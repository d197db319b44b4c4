"""Tools that run on a T1w image, and how each is called on the host and in a container.

A tool takes a checked head and returns a mask; everything else (checks, brain image, sidecars) is the same for all.
To add a tool, add a class here and its options to the configuration schema.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from neurotier.analysis.rehearsal.tool import Rehearsal
from neurotier.analysis.tool import Tool
from neurotier.core.errors import InputError, KilledError, ToolError, one_line
from neurotier.core.foreign import read_named, read_text
from neurotier.core.settings import ToolSettings
from neurotier.meter.function import run_in_phase
from neurotier.meter.tree import describe_exit

MASK = "brain_mask.nii.gz"
"""The mask that a tool's command writes into its folder."""

VERSION_BYTES = 200
LOG_END_BYTES = 64 << 10
"""Length of the end of a log in which the last line is looked for."""


class MaskTool(Tool):
    """A tool that makes masks: it alone needs nibabel."""

    makes_masks = True

    def load(self) -> None:
        import neurotier.analysis.images  # noqa: F401

    def checked_head(self, image: Path, name: str) -> Any:
        from neurotier.analysis.images import load_head

        return load_head(image, name)


@dataclass(frozen=True)
class Bet(MaskTool):
    """FSL's Brain Extraction Tool (Smith 2002), from PATH: ``bet IN OUT -m -f F``."""

    fractional_threshold: float
    name = "bet"
    environment: ClassVar[dict[str, str]] = {"FSLOUTPUTTYPE": "NIFTI_GZ"}
    version_command: ClassVar[list[str]] = ["sh", "-c", 'cat "$FSLDIR/etc/fslversion" 2>/dev/null || echo unknown']
    memory_mb = (200, 40)
    """Measured: 0.2 GB for a head of 1 mm."""

    def command(self, image: str, folder: str) -> list[str]:
        return ["bet", image, f"{folder}/brain", "-m", "-f", f"{self.fractional_threshold:g}"]

    def version(self) -> str:
        if shutil.which("bet") is None:
            raise ToolError(
                "not on PATH",
                where="tool 'bet'",
                fix="load FSL (its licence does not let neurotier include it), or set tool.name to brainextractor",
            )
        file = Path(os.environ.get("FSLDIR", "nowhere"), "etc", "fslversion")
        with contextlib.suppress(InputError):
            return one_line(read_named(file, VERSION_BYTES, "a version").decode(errors="replace")) or "unknown"
        return "unknown"

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> Any:
        from neurotier.analysis.images import check_mask

        os.environ.update(self.environment)
        with log.open("ab") as file:
            code = run_in_phase(self.command(str(image), str(folder)), log=file, cwd=str(folder))
        if code != 0:
            raise failed(self.name, code, end_of(log), name)
        return check_mask(folder, MASK, head, self.name, name)


@dataclass(frozen=True)
class BrainExtractor(MaskTool):
    """brainextractor (MIT licence): the algorithm of bet in Python."""

    fractional_threshold: float
    iterations: int
    name = "brainextractor"
    cache_variable = "NUMBA_CACHE_DIR"
    version_command: ClassVar[list[str]] = [
        *("python3", "-c", "import importlib.metadata as m; print(m.version('brainextractor'))")
    ]
    memory_mb = (500, 260)
    """Measured: 0.9 to 1.2 GB for heads of 1 mm, 3.9 GB for one of 0.67 mm."""

    def command(self, image: str, folder: str) -> list[str]:
        options = [f"{self.fractional_threshold!r}", str(self.iterations)]
        return ["python3", "-c", PROGRAM.read_text(), image, f"{folder}/{MASK}", *options]

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

TOOLS: Mapping[str, type[Any]] = {"brainextractor": BrainExtractor, "bet": Bet, "noop": Noop, Rehearsal.name: Rehearsal}


def make_tool(settings: ToolSettings) -> Tool:
    """The tool that the settings name, with its options."""
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
