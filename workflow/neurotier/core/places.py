"""Places: the one module that says where every file of a run lies.

Rules, scripts and library take their paths from here and build none themselves. Below the results folder::

    derivatives/[SITE/]sub-*/...        brain masks and images, one BIDS derivative dataset per site; with
                                        ``results_dataset``, DataLad datasets
    app/[SITE/]sub-*/...                what a BIDS App wrote for each participant, before its group level
    index/                              what the dataset holds: images.tsv, skipped.tsv, dataset.json, sites.json, ...
    profile/                            records/[SITE/]XX/sub-*.json, steps/*.json; profile, traffic, runs, steps,
                                        jobs.tsv
    group/                              group.tsv, summary.json
    figures/                            every figure as SVG and PNG with its TSV; mosaics/
    report.html                         the run report
    probe/, probe.html                  what the tiers can do: CLASS/TIER.tsv, probe.tsv, figures, and the page on it
                                        (CLASS: the class of nodes that were measured, or this host)
    check/                              CLASS.tsv: the state of the tiers as seen from a node
    advice/, advice.html                how long a run will take on which tier: advice.tsv, figures, and
                                        the page on it
    campaign/                           plan.tsv; runs/CONDITION/REPETITION/: records and logs of each run
    comparison/, comparison.html        tables and figures of the comparison, and the comparison report
    published/, published.html          tables and figures of the published experiment, and the page about them
    sweep/, sweep.html                  points/: each point of a sweep; its tables and figures, and the sweep's report
    ior/, ior.html                      the same for files that are written and read back
    daq/, daq.html                      the same for writers at a fixed rate
    staging/, staging.html              the same for writers that pass data to readers
    bigbrain/, bigbrain.html            blocks/TIER.tsv, runs/RUN/: plan and records; tables and figures, and the page;
                                        on a cluster node/: the same for the node that the runs were on
    logs/RULE/                          one log per job; analyze_participant/[SITE/]XX/sub-*.log
    state/                              what runs know about each other: see the table in workflow/README.md
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import without_credentials
from neurotier.core.files import read_or_empty
from neurotier.core.settings import DemoSettings, Settings
from neurotier.core.tiers import Tier, tiers_of


@dataclass
class Below:
    """A path below the results folder, as an attribute of :class:`Places`."""

    path: str

    def __get__(self, places: Places, _: type[Places]) -> Path:
        return places.results / self.path


@dataclass
class Each:
    """One path below the results folder per name, as a method of :class:`Places` that takes the name."""

    path: str

    def __get__(self, places: Places, _: type[Places]) -> Callable[[str], Path]:
        return lambda name: places.results / self.path.format(name)


@dataclass(frozen=True)
class Places:
    """Folders of one results folder and of the tiers it uses."""

    results: Path
    datasets: Path
    work: Path
    images: Path
    image_store: Path

    derivatives = Below("derivatives")
    index = Below("index")
    dataset_facts = Below("index/dataset.json")
    images_table = Below("index/images.tsv")
    profile = Below("profile")
    group = Below("group")
    mosaics = Below("figures/mosaics")
    campaign = Below("campaign")
    comparison = Below("comparison")
    published = Below("published")
    probe = Below("probe")
    advice = Below("advice")
    bigbrain = Below("bigbrain")
    logs = Below("logs")
    state = Below("state")
    drawn = Below("state/mosaics")
    """Mosaics that have been drawn: Snakemake empties the folder of mosaics before it makes any of them again."""
    settings_file = Below("state/settings.json")
    """Settings of the run that holds the lock; jobs read them, but no rule depends on them."""
    source_file = Below("state/source")
    """The dataset's source as given, with user name and token; only this user can read it."""
    runs = Below("state/runs")
    """Facts of every run: ``<run>.json``."""
    failures = Below("state/failures")
    """Why participants failed; removed when a participant is tried again."""
    outputs = Below("state/outputs.json")
    """Sizes of the tables, figures and pages at the end of the last run; absent during a run."""
    verified = Below("state/verified")
    """Markers: a run has verified the digest of a placed image; one per image and place."""
    lock = Below("state/lock")
    latest_run = Below("state/latest_run")
    """Name of the run that began last; jobs of an earlier run learn from it that their run is over."""
    records = Below("profile/records")
    """The records of all participant jobs."""
    saved = Below("state/saved.json")
    """Marker: the derivatives have been saved in their DataLad datasets, at these commits."""
    saving = Below("state/saving")
    """Marker: derivatives are being saved; if no process is saving them, the one that did was killed."""
    complete = Below("state/complete.json")
    """Marker: every participant whom the index selects has a record."""

    workload = Each("{}")
    """A storage workload: ``points/``, its tables, and its figures."""
    bigbrain_blocks = Each("bigbrain/blocks/{}.tsv")
    """The manifest of the blocks on a tier."""
    bigbrain_run = Each("bigbrain/runs/{}")
    """Plan and records of a run of the incrementation, ``ENGINE/TIER/PARALLELISM/REPETITION``."""
    cluster_jobs = Each("state/jobs/{}.json")
    """What became of the jobs that a run submitted to a cluster."""
    journal = Each("state/journal/{}")
    """Folder with one file for each process of a run, in which it reports while the run goes on. Short-lived."""
    readings = Each("state/runs/{}.processors")
    """Readings of the processors' activity during a run."""
    validation = Each("index/{}/validation.json")
    """Findings of the BIDS validator for a site."""
    share = Each("state/shares/{}")
    """Marker: every participant in a share has a record, or a failure that no retry will cure."""
    got = Each("state/got/{}")
    """Marker: the images of a share are on the dataset tier, and what fetching them cost. Short-lived."""
    dropped = Each("state/dropped/{}")
    """Marker: the images of a share have been dropped from the dataset tier."""

    @classmethod
    def from_settings(cls, settings: Settings, tiers: dict[str, Tier] | None = None) -> Places:
        """Places of a configuration; a job passes the tiers as they are on its node."""
        tiers = tiers or tiers_of(settings)
        results = tiers["results"].path / settings.results
        return cls(
            results=results,
            datasets=tiers["dataset"].folder("datasets"),
            work=tiers["work"].folder("work") / short_hash(str(results)),
            images=tiers["images"].folder("images"),
            image_store=tiers["results"].folder("image-store"),
        )

    def shortened(self) -> Places:
        """The same places, relative to the working folder where they lie below it, for what Snakemake prints."""
        here = Path.cwd()
        paths = vars(self).items()
        return Places(**{name: path.relative_to(here) if path.is_relative_to(here) else path for name, path in paths})

    def holds(self, name: str) -> bool:
        """Whether a path named in a file of the results lies within them: the name, or a link, may be planted."""
        try:
            folder = (self.results / name).parent.resolve()
            inside = folder.is_relative_to(self.results.resolve())
            with suppress(FileNotFoundError, NotADirectoryError):
                folder.stat()  # from Python 3.13 on, resolve() stops at links in a circle
        except (OSError, RuntimeError, ValueError):  # such links, or not a name at all
            return False
        return inside and ".." not in Path(name).parts

    def probe_table(self, tier: str, node_class: str = "") -> Path:
        """Measurements of a tier, made on a node of a class: classes differ in memory and in the path to the disk.

        Without ``node_class``, the class is this host.
        """
        return self.probe / (node_class or socket.gethostname()) / f"{tier}.tsv"

    def check_table(self, node_class: str = "") -> Path:
        """The state of the tiers as seen from a node of a class; without ``node_class``, from this host."""
        return self.results / "check" / f"{node_class or socket.gethostname()}.tsv"

    @property
    def preparing(self) -> Path:
        """Private folder in which the tool's image is tried; on the results tier, since each node may have its own work
        tier."""
        return self.image_store.with_name("preparing") / short_hash(str(self.results))

    @property
    def identity(self) -> str:
        """Random identifier that tells these results from others at the same path on another host."""
        return read_or_empty(self.state / "identity").decode(errors="replace").strip()

    def analysed(self, participant: str, by_app: bool) -> Path:
        """Folder with the results of one participant."""
        return (self.results / "app" if by_app else self.derivatives) / participant

    def step(self, name: str, site: str = "") -> Path:
        """The record of a step done once per run or site."""
        return self.profile / "steps" / site / f"{name}.json"

    def record(self, participant: str) -> Path:
        """The record of a participant job."""
        return file_of(self.records, participant)

    def failure(self, participant: str) -> Path:
        """The record of a participant's failure."""
        return file_of(self.failures, participant)

    def log(self, participant: str) -> Path:
        """The log of a participant; the log of a share lies in the folder of its rule."""
        return file_of(self.logs / "analyze_participant", participant, ".log")

    def demo(self, settings: DemoSettings) -> Path:
        """The demonstration dataset of these settings."""
        return self.datasets / f"demo-{short_hash(str(settings))}"

    def demo_facts(self, settings: DemoSettings) -> Path:
        """Marker: the demonstration dataset has been made."""
        return self.demo(settings).with_suffix(".json")

    def work_of(self, participant: str) -> Path:
        """A participant job's private folder on the work tier; its name has a character that no BIDS path has."""
        return self.work / participant.replace("/", "%")


def file_of(folder: Path, participant: str, suffix: str = ".json") -> Path:
    """The file of a participant, inside one of 256 folders per site: there may be half a million participants.

    >>> file_of(Path("records"), "NYU/sub-01").as_posix()
    'records/NYU/40/sub-01.json'
    """
    site, _, label = participant.rpartition("/")
    return folder / site / short_hash(participant)[:2] / f"{label}{suffix}"


def participant_of(file: Path, folder: Path) -> str:
    """The participant whose file :func:`file_of` named.

    >>> participant_of(file_of(Path("records"), "NYU/sub-01"), Path("records"))
    'NYU/sub-01'
    """
    parts = file.relative_to(folder).with_suffix("").parts
    return "/".join([*parts[:-2], parts[-1]])


def dataset_name(source: str, version: str | None) -> str:
    """A folder name for the clone of a source at a version: the last part of the source, and a hash of both.

    >>> dataset_name("///corr/RawDataBIDS", None)
    'RawDataBIDS-ecd15112'
    """
    last = without_credentials(source).rstrip("/").split("#")[0].split("?")[0].rsplit("/", 1)[-1].removesuffix(".git")
    return f"{safe_name(last) or 'dataset'}-{short_hash(source if version is None else f'{source}@{version}')}"


def safe_name(text: str) -> str:
    """A text made fit to be part of a file name.

    >>> safe_name("'long'"), safe_name("haswell&big"), safe_name("../x"), safe_name("")
    ('long', 'haswell_big', 'x', '')
    """
    return re.sub(r"[^\w.-]", "_", text).strip("._-")


def short_hash(text: str) -> str:
    """Eight hexadecimal digits that tell texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
