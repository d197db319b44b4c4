"""The run report: what was made and what was not, masks, volumes, and where the time went."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import yaml
from markupsafe import Markup

from neurotier.advice.matching import matching_advice
from neurotier.advice.words import interval
from neurotier.analysis.app import app_name
from neurotier.analysis.tools import TOOLS, UNKNOWN
from neurotier.core.errors import without_credentials
from neurotier.core.files import without
from neurotier.core.parallelism import PHASES
from neurotier.core.quantities import (
    MISSING,
    clock,
    cm3,
    counted,
    first_of,
    number,
    percent,
    seconds,
    share_of,
    size,
    three_digits,
    utc,
)
from neurotier.core.tables import Row, Rows, grouped
from neurotier.dataset.source import requested_unreachable
from neurotier.pages.kit.causes import BLOCK_IO, CPU, RUN_QUEUE
from neurotier.pages.kit.findings import glossary, own_reference
from neurotier.pages.kit.page import BAD, GOOD, OPEN, SHOWN_ROWS, Figure, Page, Section, Verdict, link, linked
from neurotier.pages.report.answers import run_answers
from neurotier.pages.report.data import (
    LEAST_MM3,
    MOST_MM3,
    SUMMED,
    TABLES,
    Record,
    ReportData,
    began,
    collect,
    doubts,
    total,
)
from neurotier.pages.report.figures import account, brain_volume, gantt, nodes
from neurotier.pages.report.mosaics import embedded, mosaic_name
from neurotier.run.profile_tables import timings


def verdicts(data: ReportData) -> list[Verdict]:
    """The verdicts on results and on times."""
    return [judge_results(data), judge_timings(data)]


def judge_results(data: ReportData) -> Verdict:
    """The verdict on results, regardless of times; good if every site was reached and all participants are done."""
    total = len(data.selected)
    parts = [f"{len(data.done):,} of {counted(total, 'participant')} done"]
    parts += [
        f"{len(people):,} {state}" for state, people in (("failed", data.failed), ("not run", data.not_run)) if people
    ]
    parts += [f"{counted(len(data['skipped']), 'item')} of the dataset skipped"] if data["skipped"] else []
    parts += [counted(len(data["group"]), "brain mask")] if data["group"] else []
    counts = ", ".join(parts) if total else "no participant is known, the dataset has not been indexed"
    unreachable = requested_unreachable(data.dataset["unreachable"] or {}, data.settings.dataset.participants)
    lines = [f"{path} could not be reached, and is not part of this: {why}." for path, why in unreachable.items()]
    good = total and len(data.done) == total and not unreachable
    return Verdict(f"Results: {counts}", GOOD if good else BAD, more=lines)


def judge_timings(data: ReportData) -> Verdict:
    """The verdict on whether the times of the last run can be compared, and what to know about them."""
    run = data.last_run
    if run is None:
        return Verdict("Timings: none; no run has finished a participant job", OPEN)
    lines = [time_line(data.last_jobs)] if data.last_jobs else []
    lines += [numbers(run, data)] if run["makespan_s"] is not None else []
    started = data.facts["run"] or run["run"]
    if started != run["run"]:
        lines.append(
            f"The run started last, {started}, finished no participant job; the times are those of {run['run']}."
        )
    if run["oversubscribed"]:
        machine = counted(data.facts["cpus"], "CPU") if data.facts["cpus"] else "fewer CPUs"
        crowd = f"{run['cores']} cores were asked for, the machine has {machine}"
        if data.cluster:
            crowd = "jobs were granted fewer CPUs than the participants that they analyse at once need"
        lines.append(f"Oversubscribed: {crowd}.")
    if run["limited_by"]:
        lines.append(f"The cores had room for {counted(run['parallelism'], 'job')} at once, but {run['limited_by']}.")
    if (fetched := [job["fetch_s"] for job in data.last_jobs if job["fetch_s"]]) and not data.cluster:
        whose, took = counted(len(fetched), "participant"), seconds(sum(fetched))
        lines.append(
            f"Images of {whose} were fetched meanwhile, for {took} in all; the makespan includes what participants"
            " waited for them."
        )
    if earlier := len(data.jobs) - len(data.last_jobs):
        lines.append(
            f"Resumed: {counted(earlier, 'participant')} of earlier runs {'is' if earlier == 1 else 'are'} part of"
            " these results; makespan and parallelism are those of the last run alone."
        )
    if again := len({row["share"] for row in data.cluster if row["attempt"] > 1}):
        lines.append(f"{counted(again, 'job')} had to be started again (see Jobs of the cluster).")
    return Verdict(f"Timings: {timings(run['valid'])}", OPEN, more=lines)


SPENT = {"computing": CPU, "waiting for a core": (RUN_QUEUE,), "waiting for storage": (BLOCK_IO,)}
"""What a participant's time was spent on, in words: causes of the account."""


def time_line(jobs: Sequence[Row]) -> str:
    """What the time of a participant was spent on, in words: medians over several participants, as far as known."""
    jobs, parts = [job for job in jobs if job[CPU[0]] is not None] or jobs, []
    for name, causes in SPENT.items():
        if known := [sum(job[cause] for cause in causes) for job in jobs if job[causes[0]] is not None]:
            parts.append(f"{seconds(statistics.median(known))} {name}")
    said = ", ".join(parts) or f"{seconds(statistics.median(job['cpu_s'] for job in jobs))} of CPU time"
    wall = seconds(statistics.median(job["wall_s"] for job in jobs))
    link = Markup(' <a href="#account">Where the time went</a>.') if parts else ""
    return Markup("A participant took {} (medians): {}.{}").format(wall, said, link)


def numbers(run: Row, data: ReportData) -> str:
    """How long the last run took, and how many participants ran at a time, in words."""
    text = f"Makespan {seconds(run['makespan_s'])}"
    if span := clock(run["makespan_s"]):
        text += f" ({span})"
    if run["flushed_s"] is not None and (flushed := seconds(run["flushed_s"])) != seconds(run["makespan_s"]):
        text += f", on its device after {flushed}"
    room = f" of {counted(run['cores'], 'core')}" if run["cores"] and not data.cluster else ""
    text += f"; {three_digits(run['mean_parallelism'])} at a time on average{room}"
    text += f", {run['peak_parallelism']:,} at most."
    return text + " Attempts that failed are no part of this." * bool(run["failed"])


NAMED = 10
"""Participants with the same failure who are named at most; the others are folded."""

SOURCES = {
    "staging": "counted while copying",
    "growth": "growth of the work folder",
    "page_cache": "container image, new in the page cache",
    "cgroup": "block device, this job alone",
    "device": "block device, all processes",
}
"""How traffic is known, in words, by its column in ``traffic.tsv``."""


REFERENCES = {
    "snakemake": "Mölder et al. (2021), F1000Research 10, 33",
    "datalad": "Halchenko et al. (2021), Journal of Open Source Software 6(63), 3262",
    "brainextractor": "after Smith (2002), Human Brain Mapping 17(3), 143-155",
}
BIDS = "BIDS (Gorgolewski et al., 2016, Scientific Data 3, 160044)"
APPTAINER = "Apptainer (Kurtzer, Sochat and Bauer, 2017, PLOS ONE 12(5), e0177459)"


def subtitle(data: ReportData) -> str:
    """The text below the title: what was analysed, and in which run."""
    text = f"{source_of(data)}: {app_name(data.settings)}{' in a container' if data.container else ''}"
    run = (data.last_run or data.facts)["run"]
    return f"{text}; last run {run}" if run else text


def source_of(data: ReportData) -> str:
    """The source of the dataset; of the demonstration its name, not the folder that was made for it."""
    named = without_credentials(data.settings.dataset.source)
    return named if named == "demo" else data.dataset["source"] or named


def problems(data: ReportData) -> list[Section]:
    """The sections on participants who failed, by reason, and on what was not run, skipped or missing."""
    every = [failure for failure in data.failures if str(failure["participant"]) in data.failed]
    alike = grouped(((failure["stage"], reason_of(failure), failure["exit_code"]), failure) for failure in every)
    failed = [
        {
            "failed": len(failures),
            "participants_and_logs": failed_names(data, failures),
            "stage": stage,
            "reason": reason if len(failures) > 1 else str(failures[0]["reason"] or MISSING),
            "exit_code": code,
        }
        for (stage, reason, code), failures in sorted(alike.items(), key=lambda item: -len(item[1]))
    ]
    sections = [Section(rows=failed)] if failed else []
    if data.not_run:
        names = first_of(sorted(data.not_run), SHOWN_ROWS)
        sections.append(Section(text=names, folded=f"Not run: {counted(len(data.not_run), 'participant')}"))
    if data["skipped"]:
        folded = f"Skipped: {counted(len(data['skipped']), 'item')} of the dataset"
        sections.append(Section(rows=data["skipped"], folded=folded))
    if data.missing:
        sections.append(Section(text="Missing when this report was written:", items=data.missing))
    return [Section("Failed, not run, skipped"), *sections] if sections else []


def reason_of(failure: Record) -> str:
    """Why a participant failed, without its name."""
    return str(failure["reason"]).replace(str(failure["participant"]).rpartition("/")[2], "sub-*")


def failed_names(data: ReportData, failures: Sequence[Record]) -> str:
    """Participants with the same failure, each with a link to its log; if there are many, most are folded."""
    names = [
        linked(Path(failure["log"] or "/nowhere"), data.places.results, str(failure["participant"]))
        for failure in sorted(failures, key=lambda failure: str(failure["participant"]))
    ]
    shown, rest = Markup(", ").join(names[:NAMED]), Markup(", ").join(names[NAMED:])
    if not rest:
        return shown
    return Markup("{}<details><summary>{:,} more</summary>{}</details>").format(shown, len(names) - NAMED, rest)


def masks(data: ReportData) -> Section:
    """The section with the outlines of brain masks; those that a person should look at come first."""
    folder = linked(data.places.mosaics, data.places.results, "figures/mosaics")
    drawn = [row for row in data["group"] if (data.places.mosaics / mosaic_name(row["image"])).is_file()]
    shown = shown_mosaics(drawn, data.settings.report.mosaics)
    if not shown:
        text = Markup("{} in {}; none is shown here, as configured.").format(counted(len(drawn), "mosaic"), folder)
        return Section("Brain masks", text if drawn else "No mosaic has been drawn.")
    text = Markup(
        "Outline of the brain mask over the T1w image, left on the left. Those to be looked at come first, then images"
        " spread over the dataset. "
    )
    text += Markup("Shown: {:,} of {:,}; all are in {}.").format(len(shown), len(drawn), folder)
    if len(data["group"]) > len(drawn):
        text += f" {counted(len(data['group']) - len(drawn), 'image')} without a mosaic: logs/draw_mosaics says why."
    pictures = Markup().join(mosaic_view(data, row) for row in shown)
    return Section("Brain masks", text, more=Markup('<div class="mosaics">{}</div>').format(pictures))


def shown_mosaics(drawn: Sequence[Row], count: int) -> Rows:
    """The images whose mosaics are embedded: those to look at, then others spread evenly over the dataset.

    >>> rows = [{"n": n, "outlier": n == 3, "robust_z": 4.0, "brain_volume_mm3": 1.4e6} for n in range(7)]
    >>> [[row["n"] for row in shown_mosaics(rows, count)] for count in (4, 24)]
    [[3, 0, 2, 5], [3, 0, 1, 2, 4, 5, 6]]
    """
    first = sorted(filter(doubts, drawn), key=lambda row: not row["outlier"])[:count]
    others = [row for row in drawn if not doubts(row)]
    left = min(count - len(first), len(others))
    return first + [others[place * len(others) // left] for place in range(left)]


def mosaic_view(data: ReportData, row: Row) -> str:
    """The HTML of a mosaic, with a link to its file."""
    name = mosaic_name(row["image"])
    path = data.places.mosaics / name
    words = ", ".join(filter(None, (cm3(row["brain_volume_mm3"]), doubts(row))))
    return Markup(
        '<figure><a href="{}"><img{} loading="lazy" src="{}" alt="Brain mask outline over {}: {}"></a>'
        "<figcaption>{}: {}</figcaption></figure>"
    ).format(
        link(path, data.places.results),
        Markup(' class="outlier"') if doubts(row) else "",
        embedded(path),
        row["image"],
        words,
        name.with_suffix(""),
        words,
    )


def volumes(data: ReportData) -> list[Section]:
    """The sections on brain volumes, and on masks to look at."""
    if not data["group"]:
        return []
    text = (
        f"Masks of adult brains have {number(LEAST_MM3 / 1000)} to {cm3(MOST_MM3)}: brains of 975 to"
        " 1,499 cm³ were measured in 46 adults (Allen, Damasio and Grabowski, 2002, American Journal of Physical"
        " Anthropology 118, 341-358), of 1,173 to 1,626 cm³ in 20 (Filipek et al., 1994, Cerebral Cortex 4, 344-360);"
        " and masks hold some of the fluid around the brain, so the bounds are 10 % below the least and 20 % above the"
        " most."
    )
    if data.settings.dataset.source == "demo":
        text += (
            " The heads of the demonstration are variations of one template, which is larger than most heads; the"
            " tissue drawn around its brain is simple, so that masks are too large."
        )
    rows = [
        {
            "look_at_the_mask_of": linked(
                data.places.mosaics / mosaic_name(row["image"]), data.places.results, row["image"]
            ),
            "why": doubts(row),
            **{name: row[name] for name in ("brain_volume_mm3", "brain_voxels", "robust_z")},
        }
        for row in sorted(filter(doubts, data["group"]), key=lambda row: -abs(row["robust_z"] or 0.0))
    ]
    return [Section(text=text), Section(rows=rows)]


def answers(data: ReportData) -> list[Section]:
    """The sections on where the time went, in sentences, and on bytes and files per tier."""
    found = run_answers(data) if data["profile"] else []
    counts = ("read_bytes", "read_files", "written_bytes", "written_files")
    in_order = sorted(data["traffic"], key=lambda row: (row["tier"], list(SOURCES).index(row["traffic_source"])))
    flows = []
    for (tier, source), rows in grouped(((row["tier"], row["traffic_source"]), row) for row in in_order).items():
        sums = {name: total(row[name] for row in rows) for name in counts}
        flows.append({"bytes_and_files_of_tier": tier, "how_it_is_known": SOURCES[source]} | sums)
    return [Section(items=[f"{answer}." for answer in found]), Section(rows=flows)]


def prediction(data: ReportData) -> Section | None:
    """The section that compares the advice with the last run; ``None`` if the advice has no such run."""
    run = data.last_run
    row = matching_advice(data["advice"], run) if run and run["makespan_s"] is not None else None
    if row is None or run is None:
        return None
    held = row["low_s"] <= run["makespan_s"] <= row["high_s"]
    text = f"Predicted {interval(row)}, measured {seconds(run['makespan_s'])}{'' if held else ': not within it'}."
    both = {"Makespan": (row["predicted_s"], run["makespan_s"])}
    for phase in PHASES:
        measured_s = sum(job[f"{phase}_s"] or 0.0 for job in data.last_jobs)
        if measured_s or row[f"{phase}_sum_s"]:
            both[f"Sum of {phase}"] = (row[f"{phase}_sum_s"], measured_s)
    rows = [
        {"what": what, "predicted_s": predicted_s, "measured_s": measured_s, "ratio": share_of(predicted_s, measured_s)}
        for what, (predicted_s, measured_s) in both.items()
    ]
    return Section("Predicted and measured", text, rows)


def cluster(data: ReportData) -> Section:
    """The section on cluster jobs and nodes."""
    rows = [row | {"participants": len(row["members"].split()) if row["members"] else None} for row in data.cluster]
    columns = "job share attempt node state participants queue_wait_s elapsed_s cpus asked_memory_bytes max_rss_bytes"
    lines = [f"{line}." for line in cluster_lines(data)]
    return Section("Jobs of the cluster", rows=rows, columns=columns, items=lines)


def cluster_lines(data: ReportData) -> list[str]:
    """Sentences about the jobs and nodes of the last run, without full stops."""
    jobs, nodes, started = data.cluster, data.nodes, began(data.cluster)
    lines = [
        f"{counted(len(data.last_jobs), 'participant')} in {counted(len({row['job'] for row in jobs}), 'job')} on"
        f" {counted(len(nodes), 'node')}" + (f": {first_of(nodes, 8)}" if nodes else "")
    ]
    if waits := [(row["queue_wait_s"], row["job"]) for row in jobs if row["queue_wait_s"] is not None]:
        median, (longest_s, job) = seconds(statistics.median(wait_s for wait_s, _ in waits)), max(waits)
        lines.append(f"Jobs waited in the queue for {median} (median), at most for {seconds(longest_s)} (job {job})")
    else:
        lines.append("How long jobs waited in the queue is not known")
    if failed := [row for row in jobs if row["fault_of_node"]]:
        whys = dict.fromkeys(f"{row['node']}: {row['fault_of_node']}" for row in failed)
        lines.append(f"{counted(len(failed), 'job')} failed because of the node: {first_of([*whys])}")
    if started and all(row["cpus"] and row["elapsed_s"] for row in started):
        used_s = sum(row["cpu_s"] for row in data.last_jobs)
        held_s = sum(row["cpus"] * row["elapsed_s"] for row in started)
        lines.append(
            f"The jobs held {held_s / 3600:.3g} CPU-hours, of which participants used {used_s / 3600:.3g}"
            f" ({percent(used_s / held_s)}); the rest are starts of Snakemake, waits, and idle CPUs"
        )
    else:
        lines.append("How many CPU-hours the jobs held is not known")
    if reasons := dict.fromkeys(row["reason"] for row in jobs if row["reason"]):
        lines.append(f"What only Slurm's accounting has is missing: {'; '.join(reasons)}")
    return lines


def participants(data: ReportData) -> Section:
    """The section on each participant: times, and links to derivatives, masks and log."""
    images = grouped((row["participant"], row["image"]) for row in data["group"])
    by_app, several = data.settings.is_app, len({job["run"] for job in data.jobs}) > 1
    of_phases, run = " ".join(f"{phase}_s" for phase in PHASES), "run" * several
    columns = (
        f"participant masks log fetch_s wall_s cpu_s {RUN_QUEUE} {BLOCK_IO} {of_phases} largest_process_bytes"
        f" {' '.join(SUMMED)} {run}"
    )
    rows = [
        job
        | {
            "participant": linked(data.places.analysed(name, by_app), data.places.results, name),
            "masks": links(data, (data.places.mosaics / mosaic_name(image) for image in images.get(name, ()))),
            "log": links(data, [data.places.log(name)]),
        }
        for job in data.jobs[:SHOWN_ROWS]
        for name in [job["participant"]]
    ]
    more = f"The {SHOWN_ROWS:,} slowest of {len(data.jobs):,}" if len(data.jobs) > SHOWN_ROWS else "Slowest first"
    text = (
        f"{more}; by phase in profile/profile.tsv. Largest process: its most memory; several processes at once take"
        " more. Click a heading to sort."
    )
    return Section("Participants", text if rows else "No participant finished.", rows or None, columns)


def links(data: ReportData, files: Iterable[Path]) -> str:
    """Numbered links to the files that exist."""
    found = [file for file in files if file.exists()]
    return Markup(" ").join(linked(file, data.places.results, str(place)) for place, file in enumerate(found, 1))


def facts(data: ReportData) -> list[Section]:
    """The sections on machine, command, dataset, tiers and configuration."""
    known, container, dataset = data.facts, data.container, data.dataset
    about = {"Run": "No facts were recorded about any run."}
    if known["run"]:
        cpus = f"{number(known['cpus'])} CPU{'s' * (known['cpus'] != 1)}"
        machine = f"{cpus}, {size(known['memory_bytes'])} memory, {size(known['swap_bytes'])} swap"
        cores = "one job of the cluster, and for Snakemake here" if data.cluster else "Snakemake"
        about = {
            "Run": f"{known['run']}, started {utc(known['started_s'])}",
            "Started on" if data.cluster else "Machine": f"{known['host'] or MISSING}: {machine}",
            "Kernel": known["kernel"] or MISSING,
            f"Cores for {cores}": number(known["cores"]) + ", oversubscribed" * bool(known["oversubscribed"]),
            "Command line": shlex.join(known["command_line"] or [MISSING]),
        }
    if container:
        name, checksum = container["reference"] or container["name"] or MISSING, container["sha256"] or MISSING
        tier = data.settings.placement["images"]
        about["Container image"] = f"{name}: {size(container['size_bytes'])}, on the tier {tier}, sha256:{checksum}"
    about["Dataset"] = source_of(data) + f" ({dataset['kind']})" * bool(dataset["kind"])
    about |= {"Its path": dataset["path"] or MISSING, "Selected": images_of(data, data.selected)}
    sections = [Section("Run facts", facts=about)]
    if known["tiers"]:
        rows = [{"role": role} | tier for role, tier in known["tiers"].items()]
        columns = "role name kind fs_type path mount_point mount_options capacity_bytes free_bytes"
        sections.append(Section("Tiers", rows=rows, columns=columns))
    if known["settings"]:
        text = Markup("<pre>{}</pre>").format(yaml.safe_dump(known["settings"], sort_keys=False))
        sections.append(Section(more=text, folded="Configuration of this run"))
    return sections


def images_of(data: ReportData, participants: Collection[str]) -> str:
    """How many images some participants have, and at which sites in which version, in words."""
    noun = "file" if data.settings.is_app else "T1w image"
    chosen = {name.rpartition("/")[0] for name in participants}
    versions = [(site, one.get("version")) for site, one in (data.dataset["sites"] or {}).items() if site in chosen]
    sites = [(site or "the dataset itself") + (f" ({version[:8]})" if version else "") for site, version in versions]
    where = f" at {counted(len(sites), 'site')}: {', '.join(sites)}" if any(map(any, versions)) else ""
    images = sum(row["participant"] in participants for row in data["images"])
    return f"{counted(images, noun)} of {counted(len(participants), 'participant')}{where}"


def once(data: ReportData) -> Section:
    """The section on steps that are done once."""
    text = "Steps that are not repeated for every participant; no participant's time includes them."
    return Section("Done once", text, data["steps"], f"step item phase wall_s cpu_s {RUN_QUEUE} {BLOCK_IO}")


def runs(data: ReportData) -> Section:
    """The section on all runs of the results folder, newest first."""
    rows = [
        run
        | {
            "timings": timings(run["valid"]) + ", oversubscribed" * run["oversubscribed"],
            "tiers": ", ".join(run[f"{role}_tier"] for role in ("dataset", "work", "results")),
            "cpu_share": share_of(run["cpu_sum_s"], run["wall_sum_s"]),
            "for_a_core_share": share_of(run["account_run_queue_sum_s"], run["wall_sum_s"]),
            "for_storage_share": share_of(run["account_block_io_sum_s"], run["wall_sum_s"]),
        }
        for run in reversed(data["runs"])
    ]
    text = "" if rows else "No run has finished a participant job."
    columns = (
        "run timings tool tiers cores participants failed makespan_s flushed_s mean_parallelism cpu_share"
        " for_a_core_share for_storage_share"
    )
    return Section("All runs of this results folder", text, rows or None, columns)


def software(versions: Mapping[str, str]) -> str:
    """Programs with their versions and citations, in words.

    >>> software({"neurotier": "1.0", "snakemake": "9.27"})
    'neurotier 1.0 (the neurotier authors, 2026) and snakemake 9.27 (Mölder et al. (2021), F1000Research 10, 33)'
    """
    references = {"neurotier": own_reference(), **REFERENCES}
    cited = {name: f" ({references[name]})" if name in references else "" for name in versions}
    *most, last = [f"{name} {version}{cited[name]}" for name, version in versions.items()] or ["software not known"]
    return " and ".join([", ".join(most), last] if most else [last])


def methods(data: ReportData) -> Section:
    """The section with a paragraph for a paper's methods."""
    run, image, kinds = data.last_run, data.container["reference"] or data.container["name"], data.tier_kinds
    within = f" in an {APPTAINER} container, {image}," if data.container else ""
    tool, version = app_name(data.settings), data.tool["version"] or UNKNOWN
    runs = {job["run"] for job in data.jobs if job["participant"] in data.done}
    found = grouped(pair for run, known in data.versions.items() if run in runs for pair in known.items())
    own = {name: " and ".join(dict.fromkeys(values)) for name, values in found.items()}
    # A tool in a container has another version than the one in this environment.
    used = ({} if version == UNKNOWN else {tool: version}) | without(own, *TOOLS)
    text = (
        f"{tool}{within} analysed {images_of(data, data.done)}, of the {BIDS} dataset {source_of(data)}, with"
        f" {software(used)}."
        f" There are results of {len(data.done):,} of {counted(len(data.selected), 'participant')}."
    )
    if run and run["mean_parallelism"] and run["participants"] == len(data.done) and not run["failed"]:
        text += (
            f" Datasets lay on a {kinds.get(run['dataset_tier'], 'storage')} tier, intermediate files on a"
            f" {kinds.get(run['work_tier'], 'storage')} tier; participants analysed at a time:"
            f" {three_digits(run['mean_parallelism'])} (mean)."
        )
    return Section("Methods, to paste into a paper", text)


PAGE = Page(
    name="report",
    title="Run report",
    caption="The run on one page: verdict and validity, failed and skipped participants with their reasons, masks,"
    " brain volumes, times, and the facts about machine, tiers and versions. The page shows whether the results are"
    " complete and whether the times can be compared.",
    subtitle=subtitle,
    verdicts=verdicts,
    tables=TABLES,
    read=collect,
    folder="figures",
    prints_verdicts=False,  # the end of a run prints the verdicts
    parts=(
        glossary("makespan", "on its device", "oversubscribed", "robust z"),
        problems,
        masks,
        Figure("Brain volumes", brain_volume),
        volumes,
        Figure("Where the time went", account),
        answers,
        prediction,
        Figure("Participant jobs of the last run", gantt),
        Figure("Nodes of the cluster", nodes),
        cluster,
        participants,
        facts,
        once,
        runs,
        methods,
    ),
)
