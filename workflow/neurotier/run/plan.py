"""The plan: what the rules' input functions return while Snakemake builds its graph of jobs.

They are called thousands of times, so the index is read once per version of its file
(:mod:`neurotier.run.participants`).
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from neurotier.analysis.activity import CHOOSING
from neurotier.analysis.app import app_name, app_options
from neurotier.analysis.needs import content_keys
from neurotier.containers.reference import image_identity
from neurotier.core.errors import NeurotierError, SettingsError
from neurotier.core.files import Record, read_json_or_empty, remove_path, without, write_json
from neurotier.core.places import Places, participant_of, short_hash
from neurotier.core.settings import Settings
from neurotier.core.tiers import is_per_node, with_absolute_paths
from neurotier.run.adoption import name_of_job
from neurotier.run.jobs import load_dataset, run_facts, settings_without_credentials
from neurotier.run.needs import Needs
from neurotier.run.participants import CALIBRATION, Made, Wanted, name_of, names_of_shares, selected_in
from neurotier.run.snakemake_internals import errors_as_one_line

WITHOUT_EFFECT = ("version", "threads", "memory_mb", "work_factor")
"""Options of a tool that do not affect its results: its resource needs, and the command that prints its version."""


class Plan(Needs):
    """Computes what the rules' input functions, resources and parameters need.

    Parameters
    ----------
    settings, places
        Of the run.
    on_cluster
        Whether participant jobs run on the nodes of a cluster, to which this machine need not belong.
    in_job
        Whether this is the Snakemake inside a cluster job, which must not read the whole index.
    cluster_class
        Class of the cluster's nodes, used unless the configuration names one.

    Attributes
    ----------
    most_mb
        Most memory that a cluster job can get, MB; ``None`` if not stated.
    """

    def __init__(
        self,
        settings: Settings,
        places: Places,
        on_cluster: bool = False,
        in_job: bool = False,
        cluster_class: str = "",
    ) -> None:
        super().__init__(settings, places, on_cluster)
        self.in_job, self.cluster_class = in_job, cluster_class
        self.serial, self.unfinished = f"{secrets.randbelow(10**8):08}", set[str]()
        self.taken_over: Mapping[str, str] = {}
        self.most_mb: int | None = None

    @property
    def node_class(self) -> str:
        """Class of the nodes that jobs run on; empty if jobs run on this host and no class is configured."""
        return self.settings.node_class or (self.cluster_class if self.on_cluster else "")

    @property
    def is_plain(self) -> bool:
        """Whether the dataset is a plain folder, whose files need not be fetched."""
        return load_dataset(self.places).kind == "folder"

    def sites(self) -> list[str]:
        """Sites of the participants to analyse; ``""`` for a dataset without sites."""
        return sorted({images[0].site for images in selected_in(self.places).values()})

    @property
    def shares(self) -> list[str]:
        """The names of all shares, as used in the names of files."""
        return self.names_in_files(self.all_shares())

    def all_shares(self) -> list[str]:
        """All shares; empty while there is no index."""
        return names_of_shares(len(selected_in(self.places)), self.settings, self.on_cluster)

    def names_in_files(self, shares: Iterable[str]) -> list[str]:
        """The names of shares, as used in the names of files: that of the existing marker, or a new one if there is no
        marker or a participant is not done.

        A share on which a job of an earlier start is working has the serial number of that start.
        """
        folder = self.places.share("any").parent
        markers = sorted(os.listdir(folder)) if folder.is_dir() and not folder.is_symlink() else []
        known = {name_of(name): name for name in markers if name_of(name) not in self.unfinished}
        return [known.get(share) or f"{share}.{self.taken_over.get(share, self.serial)}" for share in shares]

    def names_of_jobs(self) -> dict[str, str]:
        """Names of the shares' jobs: a job of an earlier run with the same name does the same work, and is waited
        for."""
        settings = settings_without_credentials(with_absolute_paths(self.settings, self.on_cluster))
        analysis = self.analysis
        with suppress(NeurotierError):  # the index is damaged, and will be made again
            return {share: name_of_job(self.places, share, analysis, settings) for share in self.all_shares()}
        return {}

    def calibration_markers(self) -> list[Path]:
        """Marker that an advice's calibration is done: its participants are analysed before all others."""
        return list(map(self.places.share, self.names_in_files([CALIBRATION])))

    @errors_as_one_line()
    def markers(self, share: str) -> list[Path]:
        """The files that a share waits for: on a cluster, the marker that its images are fetched, since nodes may have
        no network access to fetch them.

        If a participant needs more memory than any job can get, this process ends: every attempt would be killed.
        """
        if self.most_mb is not None:
            needed_mb, name = max((self.of(name).mem_mb + self.own_mb(), name) for name in self.members(share))
            if needed_mb > self.most_mb:
                raise SettingsError(
                    f"needs a job of {needed_mb:,} MB of memory, and jobs get at most {self.most_mb:,} MB",
                    name,
                    "choose nodes with as much, and say so: --resources mem_mb=N, or resources: mem_mb in the profile",
                )
        first = [self.places.advice / "calibration.json"] if share.startswith(CALIBRATION) else []
        return first + ([self.places.got(share)] if self.on_cluster and not self.is_plain else [])

    def analysis_markers(self) -> list[Path]:
        """Markers of all shares."""
        return list(map(self.places.share, self.shares))

    def ready(self) -> list[Path]:
        """Files that must exist before the first participant job."""
        fetched = () if self.is_plain else map(self.places.got, self.shares)
        return [self.places.index / "tool.json", *fetched, *self.validations()]

    def drop_markers(self) -> list[Path]:
        """Markers that the images of each share are dropped, also those that its pool has left; empty unless images
        are to be dropped."""
        return list(map(self.places.dropped, self.shares)) if self.settings.dataset.drop and not self.is_plain else []

    def find_remaining(
        self, made: Mapping[str, Made], forced: bool, slots: int | None, write: bool = True
    ) -> list[str]:
        """Find out which participants are to be analysed (:mod:`neurotier.run.participants`): none until there is an
        index.

        Parameters
        ----------
        made
            Participants with a record and whole derivatives.
        forced
            Whether all participants are analysed again.
        slots
            How many participants this machine analyses at once; ``None`` on a cluster.
        write
            Whether to remove records and markers of those to be analysed; otherwise this changes no files.
        """
        self.slots, selected, places = slots, selected_in(self.places), self.places
        wanted = Wanted(self.analysis, read_json_or_empty(places.index / "tool.json"), forced)
        done = {name for name in selected if name in made and wanted.is_met(made[name], selected[name])}
        # If these files are lost, all shares count as unfinished: Snakemake makes them again only if a pool waits for
        # them.
        has_lost = not all(file.exists() for file in (places.index / "tool.json", *self.image_facts()))
        finished = {share for share in self.all_shares() if not has_lost and done.issuperset(self.members(share))}
        unfinished = {*self.all_shares()} - finished
        if not write:
            self.unfinished = unfinished
        else:
            # Otherwise Snakemake, asked for the participants alone, would find nothing to do; and it may have lost the
            # metadata that show that the marker now depends on other shares.
            if unfinished or not selected:
                remove_path(places.complete)
                for file in self.validations():  # the index of a plain folder does not show that it was corrected
                    if self.settings.dataset.validation == "require" and read_json_or_empty(file).get("errors"):
                        remove_path(file)
            image = self.image()
            if image["content"] or not image["image"]:  # otherwise its source is gone, and records stay valid
                for name in (made.keys() & selected) - done:
                    remove_path(places.record(name))  # it must not pass for the result of an analysis that fails
            if selected:
                self.leave_markers(finished, done)
            else:  # Snakemake makes the index only if something else depends on it
                for marker in self.calibration_markers():
                    remove_path(marker)
        return [name for name in selected if name not in done]

    def leave_markers(self, finished: set[str], done: set[str]) -> None:
        """Keep only markers of shares in which all participants are done, and remove the failures of participants that
        are done."""
        places, calibrated = self.places, self.members(CALIBRATION)
        for file in places.failures.rglob("*.json"):
            if participant_of(file, places.failures) in done:
                remove_path(file)
        if calibrated and done.issuperset(calibrated):
            finished.add(CALIBRATION)
        for folder in (places.share("any").parent, places.dropped("any").parent):
            if folder.is_symlink() or not folder.is_dir():  # a planted link: what it points to is not ours
                remove_path(folder)
                continue
            for file in folder.iterdir():
                is_whole = file.is_file() and not file.is_symlink() and places.share(file.name).is_file()
                if name_of(file.name) not in finished or not is_whole:
                    remove_path(file)
        for share in self.names_in_files(finished):
            marker = places.share(share)
            if not marker.exists():  # dated like its newest input or output; otherwise later steps would be repeated
                write_json(marker, {"failed": {}}, durable=False)
                files = [
                    *(places.index / name for name in ("tool.json", "image.json", "caches.json")),
                    *places.index.glob("**/validation.json"),
                    *map(places.record, self.members(share)),
                ]
                # No later than now: the clock of the node that wrote the records may be ahead.
                newest_ns = min(max(file.stat().st_mtime_ns for file in files if file.exists()), time.time_ns())
                os.utime(marker, ns=(newest_ns, newest_ns))

    @property
    def is_comparing(self) -> bool:
        """Whether there is something to compare."""
        settings = self.settings
        return settings.is_campaign or bool(settings.comparison.results or settings.published)

    def compared_tables(self) -> list[Path]:
        """Tables of runs in other results folders, which a comparison waits for.

        Raises
        ------
        SettingsError
            If there is nothing to compare.
        """
        if not self.is_comparing:
            raise SettingsError(
                "there is nothing to compare",
                "target comparison",
                "name campaign.placements, comparison.results or published",
            )
        tables = (Path(folder, "profile", "runs.tsv") for folder in self.settings.comparison.results)
        return [table for table in tables if os.path.exists(table)]  # the job reports missing ones

    def campaign(self) -> list[Path]:
        """The table of the campaign whose runs are compared: of this campaign when it is done, or of one that was
        configured earlier; empty if there is none."""
        done, plan = (self.places.campaign / f"{name}.tsv" for name in ("done", "plan"))
        return [done] if self.settings.is_campaign else [plan] if plan.exists() else []

    def tool(self) -> Record:
        """The tool's name and options, which identify its results (:mod:`neurotier.run.preconditions`)."""
        settings = self.settings
        binds = {"binds": settings.containers.binds} if settings.containers.binds else {}
        given = {"environment": settings.containers.environment, **binds} if settings.image else {}
        if self.is_app:
            return {"name": app_name(settings), **app_options(settings.app), **given}
        options = without(settings.tool.options, *WITHOUT_EFFECT)
        if given and "environment" in options:
            given["environment"] = given["environment"] | options["environment"]
        return {"name": settings.tool.name, **options, **content_keys(settings), **given}

    def image(self) -> Record:
        """The container image and what determines its content: if that changes, all participants are analysed again.

        The image's place and form are not included, since they do not affect the results; each job handles them.
        """
        containers, image = self.settings.containers, self.settings.image
        try:
            content = short_hash(image_identity(image, containers.build_arguments)) if image else ""
        except (NeurotierError, OSError):
            content = ""  # the rule that obtains the image reports the error
        return {"image": image, "arguments": containers.build_arguments, "content": content}

    @property
    def images_on_nodes(self) -> bool:
        """Whether each node of a cluster has its own copy of the image; the tool is then tried on a node, not here."""
        settings = self.settings
        return self.on_cluster and settings.image is not None and is_per_node(settings, settings.placement["images"])

    def image_facts(self) -> list[Path]:
        """Files that an analysis in a container waits for."""
        names = ["image.json", "caches.json"] if self.is_app and self.settings.app.caches else ["image.json"]
        return [self.places.index / name for name in names] if self.settings.image else []

    @property
    def analysis(self) -> str:
        """Hash of what determines the results of all participants, apart from their images. In a cluster job it is that
        of the run, since the image may be seen differently on a node."""
        decided = run_facts(self.places).get("analysis_key") if self.in_job else None
        return str(decided) if decided else short_hash(json.dumps([self.tool(), self.image()], sort_keys=True))

    def validations(self) -> list[Path]:
        """Findings of the validator for every site, if validation is on."""
        return list(map(self.places.validation, self.sites())) if self.settings.dataset.validation != "none" else []

    def of_site(self, site_folder: str) -> list[str]:
        """Participants of one site (``SITE/``, or empty)."""
        everyone, site = selected_in(self.places), site_folder.rstrip("/")
        return [name for name, images in everyone.items() if images[0].site == site]

    def filters(self) -> Record:
        """The selection: if it changes, the dataset is indexed again."""
        dataset = self.settings.dataset
        chosen = {key: getattr(dataset, key) for key in ("participants", *CHOOSING, "links_to")}
        return self.clone_params() | chosen | ({"suffixes": self.settings.app.suffixes} if self.is_app else {})

    def clone_params(self) -> Record:
        """What determines a clone of the dataset, in addition to its source."""
        dataset = self.settings.dataset
        demo = {"demo": vars(self.settings.demo)} if dataset.source == "demo" else {}
        return {"version": dataset.version, "sites": dataset.sites, **demo}

    @property
    def selection(self) -> str:
        """:meth:`clone_params` and :meth:`filters` as lines that are kept with the index, since Snakemake's own record
        of them is lost when the results folder is moved."""
        return f"# {json.dumps(self.clone_params())}\n# {json.dumps(self.filters())}\n"

    def share_minutes(self, share: str, attempt: int = 1) -> int:
        """Time that the job of a share requests from a cluster, min."""
        rounds = -(-len(self.members(share)) // self.share(share).at_once)
        return self.settings.shares.minutes_per_participant * rounds * attempt
