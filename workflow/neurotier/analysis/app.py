"""BIDS Apps: ``IMAGE bids_dir out_dir participant|group``, each in a container that sees only its own data.

At the participant level, the app sees a dataset of one participant: that folder and the files at the root of the
dataset. So no task walks or hashes a whole site, which took 86 to 93 % of the task time in the published runs. The
output is kept in a folder per participant. The group level sees these folders merged, as if all participants had
written to one folder; what it leaves there is the derivative dataset.

With ``app.level: session`` the app is called for one session after the other; a participant stays the unit of work:
staged, metered, recorded and resumed as a whole. Each call sees the files of that session, those of the participant
that belong to no session, and those at the root of the dataset; it has a work folder and an output folder of its own.
The outputs are merged when all calls have succeeded.

Source: Gorgolewski et al. (2017), BIDS apps, PLOS Computational Biology 13(3), e1005209.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from neurotier.analysis.brains import Analysed, Job, Share, masks_of_app
from neurotier.analysis.derivatives import write_description
from neurotier.analysis.staging import MARGIN_BYTES, check_room, naming_full_tier, publish, remove_counted
from neurotier.analysis.steps import write_step
from neurotier.analysis.tools import end_of_log, last_line
from neurotier.containers.reference import short_name
from neurotier.containers.run import WORK, Bind, Container
from neurotier.containers.store import PlacedImage, sha256
from neurotier.core.errors import KILLED, InputError, KilledError, ToolError, one_line
from neurotier.core.files import Record, absolute_path, note, read_json, remove_path
from neurotier.core.foreign import Entry, blaming, checked_entries, copy_tree, entries_below, same_content
from neurotier.core.places import Places
from neurotier.core.private import IN, OUT, SCRATCH, work_folder
from neurotier.core.settings import AppSettings, Say, Settings
from neurotier.core.tiers import tiers_of
from neurotier.dataset.bids import selector
from neurotier.dataset.source import Dataset
from neurotier.meter.folders import Removal
from neurotier.meter.function import measure_function
from neurotier.meter.lap import joined, subtract_lap
from neurotier.meter.tree import describe_exit
from neurotier.meter.usage import Usage

RUN_SCRIPT = "/.singularity.d/runscript"
"""The script that ``apptainer run`` executes in an image."""

SESSIONS, ASIDE = "sessions", "aside"
"""Folders in a participant's work folder: with a folder per session; and with sessions that a call must not see."""

BIDS_DIR, OUT_DIR, FILTER_FILE = "/data", "/out", "/filter.json"


def call_arguments(app: AppSettings, share: Share, label: str = "", session: str = "") -> list[str]:
    """Arguments of the participant level, for one session if given; without a participant, of the group level.

    >>> from neurotier.core.configuration import with_defaults, config_schema
    >>> given = {"arguments": ["--mem", "{mem_gb}"], "label_option": "--participant_label", "work_option": "-w"}
    >>> app = AppSettings(**with_defaults(given, config_schema()["properties"]["app"]))
    >>> " ".join(call_arguments(app, Share(2, 8500), "01"))
    '/data /out participant --participant_label 01 -w /work/intermediate --mem 8'
    """
    work = f"{WORK}/intermediate"
    words, templates = ["group"], app.group_arguments
    if label:
        words, templates = ["participant", app.label_option, label], app.arguments
        if session and app.session_option:
            words += [app.session_option, session]
    if app.work_option:
        words += [app.work_option, work]
    names = {
        "participant": label,
        "session": session,
        "threads": share.threads,
        "mem_mb": share.memory_mb,
        "mem_gb": max(1, share.memory_mb // 1000),
        "work": work,
        "filter_file": FILTER_FILE,
    }
    return [BIDS_DIR, OUT_DIR, *words, *(text.format(**names) for text in templates)]


def run_level(
    arguments: list[str],
    bids_dir: Path,
    folder: Path,
    settings: Settings,
    log: Path,
    placed: PlacedImage,
    removal: Removal,
    refill: Callable[[Path], object] = lambda _: None,
) -> tuple[Usage, int]:
    """Run one level of the app, and again if it ends with one of ``app.retry_exit_codes``.

    Parameters
    ----------
    arguments
        The app's arguments.
    bids_dir
        The dataset that the app may see, read-only.
    folder
        A work folder; the app's output is in its ``out`` afterwards.
    settings
        The configuration.
    log
        File for what the app prints.
    placed
        The app's image, and the caches that it reads.
    removal
        Adds up what the app left in its scratch folders, which are removed.
    refill
        Fills the output folder, which has been emptied, before another attempt, if it had content before the first.

    Returns
    -------
    tuple
        The cost of starting the containers, and the number of attempts.

    Raises
    ------
    ContainerError, ToolError
        If the container does not start, or the app fails, writes nothing, or writes anything but files and links that
        stay in its output.
    """
    out, scratch, app, name = folder / OUT, folder / SCRATCH, settings.app, app_name(settings)
    out.mkdir(exist_ok=True)
    binds = [Bind(bids_dir, BIDS_DIR), Bind(out, OUT_DIR, writable=True)]
    if app.filter_file:
        binds.append(Bind(absolute_path(app.filter_file), FILTER_FILE))
    given = [(path, app.caches[cache.name]) for path, cache in placed.caches.items()]
    binds += [Bind(path, cache["inside"]) for path, cache in given]
    variables = {cache["variable"]: cache["inside"] for _, cache in given if cache["variable"]}
    containers = replace(settings.containers, environment=variables | settings.containers.environment)
    container = Container(placed.engine, placed.path, containers, scratch, binds)
    starts = []
    while True:
        (scratch / "intermediate").mkdir(parents=True)
        code, start = container.run([RUN_SCRIPT, *arguments], log)
        starts.append(start)
        if code not in app.retry_exit_codes or len(starts) == app.attempts:
            break
        note(
            log,
            f"neurotier: attempt {len(starts)} of {app.attempts}: "
            f"{describe_exit(code)} (one of app.retry_exit_codes): the app is started again",
        )
        remove_counted(scratch, removal)
        remove_counted(out, removal)
        out.mkdir()
        refill(out)
    if code != 0:
        error = KilledError if code in KILLED else ToolError
        tried = f" in the last of {len(starts)} attempts" if len(starts) > 1 else ""
        ended = describe_exit(code)
        if ended.startswith("killed"):  # it cannot have said why
            problem = f"the app{tried} was {ended}"
        else:
            problem = f"the app ended with {ended}{tried}: {last_line(end_of_log(log))}"
        skipped = "; app.group: false skips the group level" if "group" in arguments[2:3] else ""
        raise error(problem, name, fix=f"see {log}{skipped}")
    with blaming(f"{name}: {OUT_DIR}", ToolError):
        written = list(checked_entries(out))
    if not written:
        raise ToolError("the app wrote nothing, although its exit code is 0", name)
    remove_counted(scratch, removal)
    return joined(starts), len(starts)


def call_app(job: Job, folder: Path, placed: PlacedImage) -> Analysed:
    """Call the app for a participant, or for each of its sessions that has a selected file.

    Parameters
    ----------
    job
        The participant, whose dataset is staged below ``folder/in``.
    folder
        The participant's work folder; the app's output is in its ``out`` afterwards.
    placed
        The app's image, and the caches that it reads.

    Returns
    -------
    Analysed
        With a row per mask, and one per call (session, ``None`` for the participant; attempts).

    Raises
    ------
    InputError
        If the app is to be called by session, and there is none.
    ContainerError, ToolError
        As :func:`run_level`; also if one session wrote a file where another wrote a folder.
    """
    first, app = job.images[0], job.settings.app
    bids_dir, label = folder / IN / first.site, first.label
    sessions = {image.session for image in job.images if selector(job.settings.dataset.runs, "run")(image.bids_run)}
    labels = sorted(sessions - {""}) if app.level == "session" else [""]
    if not labels:
        raise InputError(
            "has no session, and the app is called by session",
            f"sub-{label}",
            "leave the participant out, or set app.level to participant",
        )
    starts = []
    calls = []
    removal = Removal()
    folders = [folder / SESSIONS / f"ses-{session}" if session else folder for session in labels]
    for session, own in zip(labels, folders, strict=True):
        own.mkdir(parents=True, exist_ok=True)
        arguments = call_arguments(app, job.share or Share(app.threads, app.memory_mb), label, session)
        if session:
            note(job.log, f"neurotier: session {session}")
        with one_session(bids_dir / f"sub-{label}", session, folder / ASIDE):
            start, attempts = run_level(arguments, bids_dir, own, job.settings, job.log, placed, removal)
        starts.append(start)
        calls.append({"session": session or None, "attempts": attempts})
    if labels != [""]:
        for name in merge_outputs([own / OUT for own in folders], folder / OUT):
            note(job.log, f"neurotier: sessions differ in {name}; the first was taken")
        remove_path(folder / SESSIONS)
    return Analysed(masks_of_app(job.images, folder / OUT, job.log), joined(starts), removal, calls)


@contextmanager
def one_session(subject: Path, session: str, aside: Path) -> Iterator[None]:
    """Leave only one session's folder, if one is named, in a staged participant; others are moved aside meanwhile."""
    others = [path for path in subject.glob("ses-*") if session and path.is_dir() and path.name != f"ses-{session}"]
    for path in others:
        aside.mkdir(exist_ok=True)
        path.rename(aside / path.name)
    try:
        yield
    finally:
        for path in others:
            (aside / path.name).rename(path)


def app_name(settings: Settings) -> str:
    """The name of the app in tables and reports: ``app.name``, or the name of its image; without an app, the tool's."""
    if not settings.app.image:
        return settings.tool.name
    return settings.app.name or short_name(settings.app.image)


def app_options(app: AppSettings) -> Record:
    """Options of an app that determine its results."""
    names = ("level", "label_option", "session_option", "work_option", "arguments", "caches")
    options = {name: getattr(app, name) for name in names}
    if app.filter_file:
        with suppress(OSError):  # the start of the run reports it
            options["filter"] = sha256(absolute_path(app.filter_file))
    return options


def merge_outputs(folders: Sequence[Path], target: Path, tell: Say = lambda _: None) -> list[str]:
    """Merge the outputs of all participants into one folder, as if all had been written there.

    Parameters
    ----------
    folders
        The output of each participant.
    target
        Where they are merged.
    tell
        Reports progress, before each participant.

    Returns
    -------
    list of str
        Files that participants wrote with different content; the first one was kept.

    Raises
    ------
    ToolError
        If one has a file where another has a folder, or an entry is neither a file nor a link that stays inside.
    """
    differing = []
    for count, folder in enumerate(folders, start=1):
        tell(f"copying the outputs of participant {count:,} of {len(folders):,}")

        def compare(entry: Entry, folder: Path = folder) -> None:
            name = one_line(str(entry.path))  # it may have line breaks, or bytes that are not text
            if name not in differing and not same_content(folder, target, entry.path):
                differing.append(name)

        with blaming(folder.parent.name if folder.name == OUT else folder.name, ToolError):
            copy_tree(folder, target, existing=compare)
    return differing


# The group level: once per site, on the work tier, with the outputs of all participants.


def run_group_level(
    dataset: Dataset,
    site: str,
    asked: Record,
    settings: Settings,
    places: Places,
    log: Path,
    placed: PlacedImage,
    share: Share,
    tell: Say,
) -> list[str]:
    """Merge the participants' outputs, run the app's group level on them, and publish the result.

    Parameters
    ----------
    dataset
        The dataset, read-only for the app.
    site
        The site; empty for a dataset without sites.
    asked
        What is asked for, which the record keeps: at least the ``participants`` of the site.
    settings, places, log
        Of the run.
    placed
        The app's image.
    share
        Cores and memory that the app may use.
    tell
        Reports progress.

    Returns
    -------
    list of str
        Files that participants wrote with different content; the first one was kept.

    Raises
    ------
    NeurotierError
        If the app fails, or a tier is full; then nothing is published.
    """
    tiers = tiers_of(settings, in_job=True)
    work = Places.from_settings(settings, tiers)
    folders = [places.analysed(participant, by_app=True) for participant in asked["participants"]]
    needed_bytes = MARGIN_BYTES + sum(entry.size_bytes for folder in folders for entry in entries_below(folder))
    check_room(tiers["work"], needed_bytes)
    with (
        naming_full_tier(tiers["work"], needed_bytes),
        work_folder(work.work_of(f"group-{site}"), work.identity) as folder,
    ):
        out = folder / OUT
        out.mkdir()
        differing, usage = measure_function(lambda: merge_outputs(folders, out, tell))
        phases = [("stage_in", usage)]
        if settings.app.group:
            bids_dir = (dataset.path / site).absolute()
            arguments = call_arguments(settings.app, share), bids_dir, folder, settings, log, placed, Removal()
            (start, _), usage = measure_function(partial(run_level, *arguments, partial(merge_outputs, folders)))
            subtract_lap(start, usage)
            phases += [("container_start", start), ("compute", usage)]
        if not (out / "dataset_description.json").exists():
            image, name = {"Container": {"Type": "apptainer", "Tag": f"sha256:{placed.sha256}"}}, app_name(settings)
            write_description(
                out, site, dataset.sites[site], name, read_json(places.index / "tool.json")["version"], image, name
            )
        with naming_full_tier(tiers["results"], needed_bytes):
            publishing = partial(publish, out, places.derivatives / site, settings.results_dataset, in_dataset=True)
            (_, kept), usage = measure_function(publishing)
        phases.append(("stage_out", usage))
    write_step(places, "run_group_level", site, site or "dataset", phases, derivatives=kept, asked=asked)
    return differing
