"""The run report: complete, self-contained, escaped, and written whatever is missing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from neurotier.core.files import read_json, write_json, write_text
from neurotier.core.tables import read_table, write_table
from neurotier.pages.report import PAGE
from neurotier.pages.report.data import ReportData
from neurotier.pages.report.figures import nodes
from neurotier.pages.report.mosaics import mosaic_name
from PIL import Image
from report_data import EARLIER, RUN, make_results, read_report

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_verdict_comes_first_then_failures_and_what_was_skipped_is_folded(tmp_path: Path) -> None:
    reader = read_report(*make_results(tmp_path, 5, failed=1))
    text = reader.open_text
    timings = text.index("Timings: not for comparison: 1 of 5 participants failed")
    assert timings < text.index("Failed, not run, skipped")
    assert "4 of 5 participants done, 1 failed, 1 item of the dataset skipped" in text
    assert "1 sub-05 compute brainextractor ended with exit status 1 70" in text
    assert "image is empty (0 bytes)" in reader.text
    assert "image is empty (0 bytes)" not in text


def test_numbers_are_the_tables_and_links_lead_somewhere_and_nothing_is_fetched(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path / "a folder #1", 5)
    write_text(places.results / "logs/participant/sub-04.log", "")
    reader = read_report(places, settings)
    text = (places.results / "report.html").read_text()
    assert 'class="verdict good"' in text
    run = read_table(places.profile / "runs.tsv", "runs")[-1]
    profile = pd.DataFrame(read_table(places.profile / "profile.tsv", "profile"))
    spent = profile.groupby("participant").sum(numeric_only=True)
    computing = (spent.account_user_s + spent.account_system_s).median()
    core, storage = spent.account_run_queue_s.median(), spent.account_block_io_s.median()
    went = f"{computing:.1f} s computing, {core:.2f} s waiting for a core, {storage:.2f} s waiting for storage"
    for said in (
        "Results: 5 of 5 participants done, 1 item of the dataset skipped, 9 brain masks. Timings: fit for",
        f"Makespan {run['makespan_s']:.1f} s",
        f"{run['mean_parallelism']:.2f} at a time on average of 2 cores, 2 at most",
        f"(medians): {went}. Where the time went .",
        "100 % of the input data was in the page cache; a cold start reads all of it from tier disk.",
        # five participants: two stagings of 9 MB each way, and 9 MB that compute left
        "disk counted while copying 85.83 MiB 20 85.83 MiB 20",
        "disk growth of the work folder 42.92 MiB 20",
    ):
        assert said in reader.text, said
    assert ("href", "#account") in reader.addresses
    mean = read_json(places.group / "summary.json")["mean_brain_volume_mm3"] / 1000
    assert any(f"Brain volume is {mean:,.0f} ± " in alternative for alternative in reader.alts)
    assert not {"link", "iframe", "object"} & set(reader.tags)
    for key, address in reader.addresses:
        assert not re.match(r"[a-z]*:?//", address), address
        if address.startswith("#"):
            assert address[1:] in reader.ids
        elif key in ("src", "xlink:href"):
            assert address.startswith("data:image/")
        else:
            assert (places.results / unquote(address)).exists(), address
    assert all(reader.alts), "every picture has an alternative text"
    assert len(reader.ids) == len(set(reader.ids))
    assert "default-src 'none'" in text
    assert not re.search(r"url\((?!#)|@import", text)


def test_what_a_reader_needs_comes_first_and_leads_on_with_masks_of_outliers_and_then_a_spread(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 60, failed=14, mosaics=4)
    masks = read_table(places.group / "group.tsv", "group")
    for row in masks:
        mosaic = places.mosaics / mosaic_name(row["image"])
        mosaic.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (60, 36)).save(mosaic)
    for path in places.failures.rglob("*.json"):
        failure = read_json(path)
        reason = f"brainextractor ended on {failure['participant'].rpartition('/')[2]}_T1w.nii.gz"
        write_json(path, failure | {"reason": reason})
    person = masks[0]["participant"]
    places.analysed(person, by_app=False).mkdir(parents=True)
    write_text(places.log(person), "")
    dataset = read_json(places.index / "dataset.json")
    dataset["sites"]["Elsewhere"] = {"version": "4f2a91c0"}
    write_json(places.index / "dataset.json", dataset)
    reader = read_report(places, settings)
    assert "of 60 participants at 12 sites: " in reader.text, "those of which somebody is selected"
    done = {row["participant"] for row in masks}
    sites = {row["site"] for row in masks}
    analysed = f"brainextractor analysed {len(masks)} T1w images of {len(done)} participants at {len(sites)} sites: "
    assert analysed in reader.text, "those that failed are no part of it"
    assert f"There are results of {len(done)} of 60 participants." in reader.text
    order = ("failed-not-run-skipped", "brain-masks", "brain_volume", "account", "gantt", "participants", "run-facts")
    assert [name for name in reader.ids if name in order] == list(order)
    assert re.search(
        r" 14 (\w+/sub-\d+, ){9}\S+ 4 more (\S+, ){3}\S+ compute brainextractor ended on sub-\*_T1w", reader.text
    )
    leads = {unquote(address) for _, address in reader.addresses}
    mosaics = [places.mosaics / mosaic_name(row["image"]) for row in masks if row["participant"] == person]
    for path in (places.log(person), places.analysed(person, by_app=False), *mosaics):
        assert str(path.relative_to(places.results)) in leads
    assert "with neurotier 0.1.0 (the neurotier authors, 2026), snakemake 9.27.1 (Mölder et al. (2021)" in reader.text
    shown = [figure for figure in PAGE.figures if figure.chart.__name__ in reader.ids]
    assert [figure.chart for figure in PAGE.figures if figure not in shown] == [nodes], "all but that of a cluster"
    assert all(figure.reading in reader.text for figure in shown), "how each is read"
    assert "The heads of the demonstration are variations of one template" in reader.text
    assert "How they are measured: workflow/measures.md of neurotier." in reader.text
    assert any(address.endswith("/workflow/measures.md") for address in leads)
    pictures = [alt for alt in reader.alts if alt.startswith("Brain mask")]
    outliers = sum(row["outlier"] for row in masks)
    assert outliers > 0
    assert ["outlier" in alt for alt in pictures] == [number < outliers for number in range(4)]
    assert f"Shown: 4 of {len(masks)}; all are in figures/mosaics" in reader.text


def test_the_version_of_a_dataset_without_sites_is_in_the_facts_and_for_the_paper(tmp_path: Path) -> None:
    """Both said none; a plain folder has none."""
    places, settings = make_results(tmp_path, 5)
    dataset = read_json(places.index / "dataset.json")
    for version in ("4f2a91c0ffee4711", ""):
        write_json(places.index / "dataset.json", dataset | {"sites": {"": {"version": version}}})
        text = read_report(places, settings).text
        assert text.count(" participants at 1 site: the dataset itself (4f2a91c0)") == (2 if version else 0)


def test_for_a_paper_versions_are_those_of_the_tool_and_of_the_runs_that_analysed_somebody(tmp_path: Path) -> None:
    """It named the brainextractor of the host, though another in a container made the masks; of a program, none; and of
    neurotier the one that had written the page last."""
    places, settings = make_results(tmp_path, 5, earlier=2)
    write_json(places.index / "tool.json", {"name": "brainextractor", "version": "9.9.9"})
    last = read_json(places.runs / f"{RUN}.json")
    for run, hours, neurotier in ((EARLIER, -8, "0.0.9"), ("20261130-page", 8, "0.2.0")):
        versions = last["versions"] | {"neurotier": neurotier}
        started = {"run": run, "started_s": last["started_s"] + 3600 * hours}
        write_json(places.runs / f"{run}.json", last | started | {"versions": versions})
    text = read_report(places, settings).text
    reference = "(after Smith (2002), Human Brain Mapping 17(3), 143-155)"
    assert f"with brainextractor 9.9.9 {reference}, neurotier 0.0.9 and 0.1.0 (the neurotier authors, 2026), " in text
    assert "brainextractor 0.3.0" not in text


def test_memory_is_that_of_the_largest_process_and_called_so(tmp_path: Path) -> None:
    """Four processes of 200 MB each were shown as a peak memory of 227 MB, and take 800 MB."""
    text = read_report(*make_results(tmp_path, 2)).text
    assert "Largest process Staged" in text
    assert "several processes at once take more" in text
    assert "Peak memory" not in text


def test_what_was_fetched_meanwhile_is_said_and_by_participant(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 3)
    table = places.profile / "profile.tsv"
    took_s = {"sub-01": 30.0, "sub-02": 12.0, "sub-03": 0.0}
    rows = [row | {"fetch_s": took_s[row["participant"]]} for row in read_table(table, "profile")]
    write_table(table, "profile", rows)
    text = read_report(places, settings).text
    assert "Images of 2 participants were fetched meanwhile, for 42.0 s in all" in text
    assert re.search(r"sub-02 .*?12\.0 s", text)
    assert "Fetch" in text


@pytest.mark.parametrize("failed", [0, 1])
def test_attempts_that_failed_are_not_part_of_the_parallelism_and_a_paper_gets_none(
    tmp_path: Path, failed: int
) -> None:
    text = read_report(*make_results(tmp_path, 5, failed=failed)).text
    assert ("2 at most. Attempts that failed are no part of this." in text) is bool(failed)
    assert "from the earliest start to the latest end of the participant jobs that succeeded" in text
    assert ("participants analysed at a time: " in text) == (not failed)


def test_untrusted_text_is_escaped(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 5, failed=1)
    failure = places.failure("sub-05")
    write_json(failure, {**read_json(failure), "reason": EVIL, "stage": EVIL, "log": "javascript:alert(1)"})
    write_table(places.index / "skipped.tsv", "skipped", [{"item": EVIL, "reason": EVIL}])
    dataset = {"source": EVIL, "sites": {EVIL: {"version": EVIL}}}
    write_json(places.index / "dataset.json", dataset)
    facts = places.runs / f"{RUN}.json"
    changes = {"command_line": EVIL, "host": EVIL, "versions": {EVIL: EVIL}, "settings": {EVIL: EVIL}}
    write_json(facts, {**read_json(facts), **changes})
    reader = read_report(places, settings)
    assert reader.tags.count("script") == 1, "the page's own"
    assert reader.text.count("alert(1)") >= 8
    assert not any(address.startswith("javascript:") for _, address in reader.addresses)


REQUIRED = ("index", "profile", "group", "state")


@pytest.mark.parametrize("gone", [*REQUIRED, "everything"])
def test_the_page_is_written_whatever_is_missing(tmp_path: Path, gone: str) -> None:
    places, settings = make_results(tmp_path, 5, failed=1)
    for folder in REQUIRED if gone == "everything" else (gone,):
        shutil.rmtree(places.results / folder)
    text = read_report(places, settings).text
    if gone == "profile":
        assert "0 of 5 participants done, 1 failed, 4 not run" in text
        assert "Timings: none; no run has finished a participant job" in text
    if gone in ("index", "everything"):
        assert "index/images.tsv is missing" in text
    if gone == "everything":
        assert "no participant is known" in text


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 5)
    (places.group / "group.tsv").write_text("participant\nsub-01\n")
    (places.profile / "profile.tsv").write_bytes(b"\xff\xfe")
    (places.index / "dataset.json").write_text("[]")
    text = read_report(places, settings).text
    for name in ("group.tsv", "profile.tsv", "dataset.json"):
        assert f"{name} cannot be read" in text, name


def test_many_participants_stay_readable_and_small(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 700, failed=3, not_run=5, slots=25, earlier=100)
    text = read_report(places, settings).text
    path = places.results / "report.html"
    assert path.stat().st_size < 3_000_000
    assert "692 of 700 participants done, 3 failed, 5 not run" in text
    assert "Oversubscribed: 25 cores were asked for, the machine has 8 CPUs." in text
    assert "Resumed: 100 participants of earlier runs" in text
    assert text.count(" compute brainextractor ended") == 1, "those who failed alike stand together"
    first = path.read_bytes()
    read_report(places, settings)
    assert path.read_bytes() == first, "equal data give equal bytes"


@pytest.mark.parametrize(("participants", "run"), [([4, 0], "0"), ([0, 4, 0, 0], "1"), ([0, 0], "1"), ([], None)])
def test_times_are_of_the_last_run_that_finished_somebody(participants: list[int], run: str | None) -> None:
    """After a start that tried none but those who fail, the report keeps what it said."""
    runs = [{"run": str(number), "participants": count} for number, count in enumerate(participants)]
    assert (ReportData({"runs": runs}, None).last_run or {"run": None})["run"] == run
