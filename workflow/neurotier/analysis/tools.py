"""Tools that run on a T1w image, and how each is called on the host and in a container.

A tool takes a checked head and returns a mask; everything else (checks, brain image, sidecars) is the same for all
tools. A program that writes the mask of one image needs no class: the configuration says how :class:`Program` calls it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.analysis.inflating import LEAST_BYTES, SLAB_BYTES, opened_content
from neurotier.analysis.rehearsal.description import BLOCK_BYTES, in_blocks, read_description, text_of
from neurotier.analysis.rehearsal.replay import replay
from neurotier.containers.store import sha256
from neurotier.core.errors import KILLED, InputError, KilledError, ToolError, one_line
from neurotier.core.files import once_per_version
from neurotier.core.foreign import read_text
from neurotier.core.places import short_hash
from neurotier.core.private import OUT
from neurotier.core.processes import start_process
from neurotier.core.settings import ProgramSettings, ToolSettings
from neurotier.dataset.bids import SITE_FOLDER
from neurotier.meter.tree import describe_exit, shell_code

UNKNOWN = "unknown"
"""Version of a program that does not report one."""

VERSION_BYTES = 200

LOG_END_BYTES = 64 << 10
"""Length of the end of a log that is searched for its last line."""

LONGEST_TMPDIR_BYTES = 75
"""Longest path for temporary files: paths of sockets in it, as of Python's multiprocessing, may have 107 bytes."""

PROGRAM = Path(__file__).with_name("brainextractor_program.py")

Pair = tuple[Any, Any]
"""An image as nibabel loads it, and its mask as booleans, without their types: a tool that makes no masks has neither,
and need not import their libraries."""


class Tool:
    """A brain extraction tool.

    Attributes
    ----------
    environment
        Environment variables for its command.
    cache_variable
        Environment variable for the folder in which it caches compiled code; empty if it compiles nothing.
    version_command
        Command in the image that prints the version; empty if the image's labels have it.
    memory_mb
        Peak memory of a participant job: a base, and MB per MB of the largest compressed image.
    threads
        Cores that a participant takes.
    work_factor
        Work space per byte of compressed input: the copy, the brain (at most as large), the mask, and the tool's own
        files.
    content
        Name of what :meth:`content_key` identifies.
    """

    name: str
    environment: Mapping[str, str] = {}
    cache_variable = ""
    version_command: Sequence[str] = ("echo", "1")
    memory_mb: tuple[int, int] = (100, 0)
    threads = 1
    work_factor = 3.0
    content = "description"

    def work_bytes(self, images: int, input_bytes: int) -> int:
        """Room on the work tier for ``images`` images of ``input_bytes`` in total, bytes."""
        return int(self.work_factor * input_bytes)

    def work_files(self, images: int) -> int | None:
        """Files and folders made for these images on the work tier; ``None`` if unknown."""
        return None

    def content_key(self) -> str:
        """Identifies what determines the tool's work besides its options; empty if nothing does."""
        return ""

    def command(self, image: str, folder: str) -> list[str]:
        """The command in the image that extracts the brain from a file into a folder."""
        return ["true"]

    def read_mask(self, folder: Path, below: str, head: Any, name: str) -> Any:
        """The mask of a head that the command wrote ``below`` a trusted folder; ``None`` if the tool makes none."""
        return None

    def find(self) -> str:
        """Path of the tool, as far as it is known; :class:`ToolError` if it is not installed."""
        return ""

    def version(self) -> str:
        """The tool's version; :class:`ToolError` if it is not installed."""
        return "1"

    def warm_up(self) -> None:
        """Preparation to be done once, instead of by all the first participant jobs at the same time."""

    def load(self) -> None:
        """Import what :meth:`extract` needs: a pool calls this before it forks its first child."""

    def checked_head(self, image: Path, name: str) -> Any:
        """A head that can contain a brain, checked before the tool starts; errors call it ``name``.

        For a tool that makes no masks, the file is just read once, or its first :data:`LEAST_BYTES`.

        Raises
        ------
        InputError
            If the file is damaged; see also :func:`neurotier.analysis.images.load_head`.
        """
        with opened_content(image.parent, image.name, name, InputError) as content:
            for _ in range(LEAST_BYTES // SLAB_BYTES):
                if not content.read(SLAB_BYTES):
                    break

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> Any:
        """The brain mask of a head; by default made by the tool's command.

        Parameters
        ----------
        head
            The loaded and checked image; ``None`` for a tool that makes no masks.
        image
            Its file on the work tier.
        folder
            Scratch folder on the work tier, for this image alone.
        log
            File for what the tool prints.
        name
            What to call the image in an error.

        Returns
        -------
        Mask or None
            Booleans on the head's grid; ``None`` from a tool that makes no masks.
        """
        # temporary files are on the work tier, too
        temporary = {"TMPDIR": str(folder)} if len(os.fsencode(folder)) <= LONGEST_TMPDIR_BYTES else {}
        environment = {**os.environ, **temporary, **self.environment}
        with log.open("ab") as file, self.starting(name):
            before = file.tell()
            command = self.command(str(image), str(folder))
            code = start_process(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=folder, env=environment
            ).wait()
            has_said = file.tell() > before
        if code:
            raise tool_failure(self.name, shell_code(code), end_of_log(log) if has_said else "", name)
        return self.read_mask(folder, "", head, name)

    @contextmanager
    def starting(self, name: str) -> Iterator[None]:
        """Explain why a program cannot be started: it may be gone, or be a script without its first line. An error of
        the fork is raised as it is."""
        try:
            yield
        except OSError as error:
            if not error.filename:
                raise
            raise ToolError(f"{self.name} cannot be started ({error.strerror}: {error.filename})", name) from None


class MaskTool(Tool):
    """A tool that makes masks: only these need nibabel.

    Attributes
    ----------
    written, of_brain
        The file that its command writes, and whether that is the extracted brain instead of a mask.
    """

    written, of_brain = "brain_mask.nii.gz", False

    def load(self) -> None:
        import neurotier.analysis.images  # noqa: F401

    def checked_head(self, image: Path, name: str) -> Any:
        from neurotier.analysis.images import load_head

        return load_head(image, name)

    def read_mask(self, folder: Path, below: str, head: Any, name: str) -> Any:
        from neurotier.analysis.images import check_mask

        return check_mask(folder, str(Path(below, self.written)), head, self.name, name, self.of_brain)


digest = once_per_version(sha256)
"""The SHA-256 of a user's file."""


class Program(MaskTool):
    """A program on PATH or in an image, called for one image at a time as the configuration says, such as ``bet``."""

    content = "content of the command's files"

    def __init__(self, name: str, settings: ProgramSettings) -> None:
        self.name, self.settings, self.environment = name, settings, settings.environment
        self.version_command = shlex.split(settings.version or "")
        self.memory_mb = settings.memory_mb, 40  # image and mask in neurotier's own process
        self.threads, self.work_factor = settings.threads, settings.work_factor
        self.written, self.of_brain = settings.mask or settings.brain or "", not settings.mask

    def command(self, image: str, folder: str) -> list[str]:
        given = {"input": image, "output": folder, "threads": self.threads}
        return [word.format(**given) for word in shlex.split(self.settings.command)]

    def content_key(self) -> str:
        """The files that the command names by full path, such as an interpreter's script, in eight digits.

        If one of them changes, this is another analysis. If one is unreadable, the program itself will report that.
        """
        digests = []
        for word in shlex.split(self.settings.command):
            path = word.rpartition("=")[2]
            if os.path.isabs(path) and os.path.isfile(path):
                with suppress(OSError):
                    digests.append(digest(Path(path)))
        return short_hash(" ".join(digests)) if digests else ""

    def find(self) -> str:
        program = self.command("", "")[0]
        if file := shutil.which(program):
            return file
        problem = f"no {program}" if "/" in program else f"{program} is not on PATH"
        raise ToolError(
            problem,
            f"tool {self.name!r}",
            f"install or load it, or name its image in tool.{self.name}.image and add --sdm apptainer",
        )

    def version(self) -> str:
        file, where = self.find(), f"tool {self.name!r}"
        with self.starting(where):
            if not self.version_command:
                return f"sha256:{digest(Path(file))[:12]}"
            environment = os.environ | self.environment
            done = subprocess.run(self.version_command, capture_output=True, stdin=subprocess.DEVNULL, env=environment)
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            raise tool_failure(shlex.join(self.version_command), shell_code(done.returncode), said, where)
        return one_line(done.stdout[-VERSION_BYTES:].decode(errors="replace")) or UNKNOWN


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
        options = map(repr, (self.fractional_threshold, self.iterations))
        return ["python3", "-c", PROGRAM.read_text(), image, f"{folder}/{self.written}", *options]

    def version(self) -> str:
        import importlib.metadata

        try:
            return importlib.metadata.version("brainextractor")
        except importlib.metadata.PackageNotFoundError:
            raise ToolError("not installed", "tool 'brainextractor'", "pip install brainextractor") from None

    find = version

    def warm_up(self) -> None:
        """Compile its numba functions into the cache; otherwise the first 25 jobs would all do so at once."""
        from neurotier.analysis.brainextractor_program import brain_mask

        with redirect_stdout(None):
            brain_mask(smallest_head(), 0.5, 2)

    def load(self) -> None:
        import neurotier.analysis.brainextractor_program  # noqa: F401

        super().load()

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> Any:
        from neurotier.analysis.brainextractor_program import brain_mask
        from neurotier.analysis.images import as_mask

        with log.open("a") as file, redirect_stdout(file), redirect_stderr(file):
            try:
                data = brain_mask(head, self.fractional_threshold, self.iterations)
            except (ArithmeticError, IndexError, TypeError, ValueError) as error:
                raise ToolError(f"brainextractor failed: {type(error).__name__}: {error}", name) from None
        return as_mask(data, self.name, name)


@dataclass(frozen=True)
class Noop(Tool):
    """No analysis: ``true`` or ``sleep`` per image, to measure only staging and neurotier."""

    sleep_s: float
    name = "noop"

    def command(self, image: str, folder: str) -> list[str]:
        return ["sleep", f"{self.sleep_s:g}"] if self.sleep_s else ["true"]


class Rehearsal(Tool):
    """What a described pipeline does to storage and processors (:mod:`neurotier.analysis.rehearsal.replay`).

    Images are done one after the other.
    """

    name = "rehearsal"

    def __init__(self, profile: str, scale: float) -> None:
        self.profile, self.description = profile, read_description(profile, scale)
        self.memory_mb = 100 + self.description.memory_bytes // 1_000_000, 0  # 100 MB for the job itself
        self.threads = self.description.threads

    def work_bytes(self, images: int, input_bytes: int) -> int:
        made = self.description  # images are done one after the other, and their results are kept
        return input_bytes + made.peak_bytes + made.folders * BLOCK_BYTES + images * in_blocks(made.results)

    def work_files(self, images: int) -> int:
        made = self.description
        return made.peak_files + made.folders + images * sum(count for count, _ in made.results)

    def content_key(self) -> str:
        """The description, hashed to eight digits: if it changes, all participants are analysed again."""
        return short_hash(text_of(self.profile)[0])

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> None:
        replay(self.description, image, folder, results_folder(folder.parent / OUT, name))


TOOLS: Mapping[str, type[Any]] = {"brainextractor": BrainExtractor, "noop": Noop, Rehearsal.name: Rehearsal}
"""All tools except programs."""


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

    distance_mm = 4 * np.linalg.norm(np.indices((31, 31, 31)) - 15, axis=0)
    data = np.asfortranarray(100.0 * (distance_mm < 40) + distance_mm / 60)  # in the memory order of images from files
    return nib.Nifti1Image(data, np.diag([4.0, 4.0, 4.0, 1.0]))


def tool_failure(tool: str, code: int, said: str, name: str) -> ToolError:
    """The error for a tool that ended with a nonzero exit code, with the last line that it printed."""
    error = KilledError if code in KILLED else ToolError
    return error(f"{tool} failed ({describe_exit(code)}): {last_line(said)}", name)


def end_of_log(log: Path) -> str:
    """The end of a job's log, or why it cannot be read, if the tool has replaced it with something else."""
    try:
        return read_text(log.parent, log.name, LOG_END_BYTES, from_end=True)
    except FileNotFoundError:
        return ""
    except InputError as error:
        return f"its log {error.what}"


def last_line(said: str) -> str:
    """The last line that a tool printed."""
    return re.split(r"[\r\n]", said.strip())[-1].strip()[:200] or "it printed nothing"


def results_folder(out: Path, name: str) -> Path:
    """The folder for an image's results: one of its own next to the derivatives of other images.

    >>> from pathlib import Path
    >>> str(results_folder(Path("out"), "NYU/sub-01/ses-1/anat/sub-01_ses-1_T1w.nii.gz"))
    'out/sub-01/ses-1/anat/sub-01_ses-1_T1w'
    """
    return out / re.sub(rf"^{SITE_FOLDER}|\.[^/]*$", "", name)
