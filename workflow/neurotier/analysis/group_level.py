"""The group level of a BIDS App, once per site: on the work tier, on the outputs of all participants."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from neurotier.analysis.app import Share, app_name, call_arguments, merge_outputs, run_level
from neurotier.analysis.derivatives import describe_app
from neurotier.analysis.staging import MARGIN_BYTES, check_room, naming_full_tier, publish
from neurotier.analysis.steps import write_step
from neurotier.containers.store import PlacedImage
from neurotier.core.files import read_json
from neurotier.core.foreign import entries_below
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import tiers_of
from neurotier.core.work_folders import OUT, work_folder
from neurotier.dataset.source import Dataset
from neurotier.meter.folders import Removal
from neurotier.meter.function import measure_function
from neurotier.meter.lap import take_out
from neurotier.meter.usage import Usage


def run_group_level(
    dataset: Dataset,
    site: str,
    participants: list[str],
    settings: Settings,
    places: Places,
    log: Path,
    placed: PlacedImage,
    share: Share,
    tell: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Merge the participants' outputs, run the app's group level on them, and publish the result.

    Parameters
    ----------
    dataset
        The dataset, read-only for the app.
    site
        The site; empty for a dataset without sites.
    participants
        The participants of the site.
    settings, places, log
        Of the run.
    placed
        The app's image.
    share
        What the app may take.
    tell
        Takes how far it is.

    Returns
    -------
    list of str
        Files that participants wrote with different contents, of which one was kept.

    Raises
    ------
    NeurotierError
        If the app fails, or a tier is full; then nothing is published.
    """
    tiers = tiers_of(settings, in_job=True)
    work = Places.from_settings(settings, tiers)
    phases: list[tuple[str, Usage]] = []
    folders = [places.analysed(participant, by_app=True) for participant in participants]
    needed_bytes = MARGIN_BYTES + sum(entry.size_bytes for folder in folders for entry in entries_below(folder))
    check_room(tiers["work"], needed_bytes)
    name = f"group-{site}" if site else "group"
    with (
        naming_full_tier(tiers["work"], needed_bytes),
        work_folder(work.work_of(name), work.identity) as folder,
    ):
        out = folder / OUT
        out.mkdir()
        differing, usage = measure_function(lambda: merge_outputs(folders, out, tell))
        phases.append(("stage_in", usage))
        if settings.app.group:
            bids_dir = (dataset.path / site).absolute()
            arguments = call_arguments(settings.app, share)

            def call() -> tuple[Usage, int]:
                again = partial(merge_outputs, folders)
                return run_level(arguments, bids_dir, folder, settings, log, placed, Removal(), again)

            (start, _), usage = measure_function(call)
            take_out(start, usage)
            phases += [("container_start", start), ("compute", usage)]
        version = read_json(places.index / "tool.json")["version"]
        describe_app(out, site, dataset.sites[site], app_name(settings), version, placed.sha256)
        final = places.derivatives / site
        with naming_full_tier(tiers["results"], needed_bytes):
            (_, kept), usage = measure_function(lambda: publish(out, final, in_dataset=True))
        phases.append(("stage_out", usage))
    write_step(places, "run_group_level", site, site or "dataset", phases, kept)
    return differing
