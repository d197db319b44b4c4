"""BIDS Apps: ``IMAGE bids_dir out_dir participant|group``, each in a container that sees only its own data.

At the participant level, the app sees a dataset of one participant: its folder and the files at the root of the
dataset. So no task walks or hashes a whole site, which took 86 to 93 % of the task time in the published runs. Its
output is kept in a folder per participant. The group level sees these folders merged, as if all participants had
written to one folder; what it leaves there is the derivative dataset.

Source: Gorgolewski et al. (2017), BIDS apps, PLOS Computational Biology 13(3), e1005209.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neurotier.analysis.staging import TIME_STAMP
from neurotier.core.errors import KilledError, ToolError
from neurotier.core.foreign import Entry
from neurotier.core.foreign_trees import checked_entries, copy_tree, same_content
from neurotier.core.private import remove_private
from neurotier.core.settings import AppSettings, Settings
from neurotier.core.work_folders import OUT, SCRATCH
from neurotier.dataset.bids import without_prefix
from neurotier.meter.tree import describe_exit
from neurotier.meter.usage import Usage

if TYPE_CHECKING:  # a job on the host starts no container
    from neurotier.containers.store import PlacedImage

RUN_SCRIPT = "/.singularity.d/runscript"
"""The script that ``apptainer run`` executes in an image."""

BIDS_DIR, OUT_DIR = "/data", "/out"


def participant_arguments(app: AppSettings, label: str) -> list[str]:
    """Arguments of the participant level.

    >>> app = AppSettings("a.sif", None, [], ["--no-check"], "--participant_label", "-w", True, [], 1, 1, 3.0)
    >>> " ".join(participant_arguments(app, "01"))
    '/data /out participant --participant_label 01 -w /work/intermediate --no-check'
    """
    from neurotier.containers.run import WORK

    work = [app.work_option, f"{WORK}/intermediate"] if app.work_option else []
    label = without_prefix(label, "sub")
    return [BIDS_DIR, OUT_DIR, "participant", app.label_option, label, *work, *app.arguments]


def group_arguments(app: AppSettings) -> list[str]:
    """Arguments of the group level."""
    from neurotier.containers.run import WORK

    work = [app.work_option, f"{WORK}/intermediate"] if app.work_option else []
    return [BIDS_DIR, OUT_DIR, "group", *work, *app.group_arguments]


def run_level(
    arguments: list[str], bids_dir: Path, folder: Path, settings: Settings, log: Path, placed: PlacedImage
) -> Usage:
    """Run one level of the app.

    Parameters
    ----------
    arguments
        The app's arguments.
    bids_dir
        The dataset that it may see, read-only.
    folder
        A work folder; the app's output is in its ``out`` afterwards.
    settings
        The configuration.
    log
        File that takes what the app prints.
    placed
        The app's image.

    Returns
    -------
    Usage
        The cost of starting the container.

    Raises
    ------
    ContainerError, ToolError
        If the container does not start, or the app fails, writes nothing, or writes anything but files and links that
        stay in its output.
    """
    from neurotier.containers.run import Bind, Container

    out, scratch = folder / OUT, folder / SCRATCH
    out.mkdir(exist_ok=True)
    (scratch / "intermediate").mkdir(parents=True)
    binds = [Bind(bids_dir, BIDS_DIR), Bind(out, OUT_DIR, writable=True)]
    container = Container(placed.engine, placed.path, settings.containers, scratch, binds)
    code, start = container.run([RUN_SCRIPT, *arguments], log, program=RUN_SCRIPT)
    name = app_name(settings)
    if code != 0:
        from neurotier.analysis.tools import end_of, last_line

        error = KilledError if code == KilledError.exit_code else ToolError
        raise error(f"the app ended with {describe_exit(code)}: {last_line(end_of(log))}", where=name, fix=f"see {log}")
    if not sum(1 for _ in checked_entries(out, where=f"{name}: {OUT_DIR}")):
        raise ToolError("the app wrote nothing, although its exit code is 0", where=name)
    remove_private(scratch)
    return start


def app_name(settings: Settings) -> str:
    """The name of the app in tables and reports: ``app.name``, or the name of its image; without an app, the tool's."""
    if not settings.app.image:
        return settings.tool.name
    if settings.app.name:
        return settings.app.name
    from neurotier.containers.reference import DIGEST, safe_name

    last = DIGEST.sub("", settings.app.image).rsplit("/", 1)[-1].split(":")[0]
    return safe_name(last.removesuffix(".sif").removesuffix(".def"))


def root_files(site: Path) -> list[str]:
    """Files at a dataset's root that every participant's app sees: description, README, participants, sidecars."""
    if not site.is_dir():
        return []
    files = (path for path in site.iterdir() if not path.is_dir())
    return sorted(path.name for path in files if not path.name.startswith(".") or path.name == ".bidsignore")


def merge_outputs(folders: Sequence[Path], target: Path, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """Merge the outputs of all participants into one folder, as if all had been written there.

    Parameters
    ----------
    folders
        The output of each participant.
    target
        Where they are merged.
    tell
        Takes how far it is, before each participant.

    Returns
    -------
    list of str
        Files that participants wrote with different contents, of which the first was kept.

    Raises
    ------
    ToolError
        If one has a file where another has a folder, or an entry is neither a file nor a link that stays inside.
    """
    differing: list[str] = []
    for count, folder in enumerate(folders, start=1):
        tell(f"copying the outputs of participant {count:,} of {len(folders):,}")

        def compare(entry: Entry, folder: Path = folder) -> None:
            if str(entry.path) not in differing and not same_content(folder, target, entry.path):
                differing.append(str(entry.path))

        copy_tree(folder, target, existing=compare, skipped=[TIME_STAMP], where=folder.name)
    return differing
