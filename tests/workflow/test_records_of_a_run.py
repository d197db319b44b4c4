"""The neutral form of a run's records has what its tables are made of."""

from __future__ import annotations

from support import ROOT, Project, read_json

OF_A_PHASE = ("wall_s", "cpu_s"), ("account_user_s", "account_other_s"), ("device_written_bytes", "max_rss_bytes")


def number(cell: str) -> float | None:
    return None if cell == "n/a" else float(cell)


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def test_tables_can_be_made_of_the_neutral_form(project: Project) -> None:
    project.heads("01", "02", bad=b"none")
    ended = project.snakemake(*project.configure(tool="noop"))
    assert ended.lines("2 of 3 participants done, 1 failed"), ended.output
    converted = project.run(str(ROOT / "tests" / "records_of_a_run.py"), "results", "neutral")
    assert converted.code == 0, converted.output
    (file,) = (project.folder / "neutral").iterdir()
    run = read_json(file)
    (row,) = project.table("profile/runs.tsv")
    assert (run["run"]["run"], run["run"]["cores"]) == (row["run"], int(row["cores"]))
    assert [failure["participant"] for failure in run["failures"]] == ["sub-bad"]
    phases = [(one["participant"], phase) for one in run["participants"] for phase in one["phases"]]
    rows = project.table("profile/profile.tsv")
    assert [(row["participant"], row["phase"]) for row in rows] == [(name, phase["phase"]) for name, phase in phases]
    for row, (_, phase) in zip(rows, phases, strict=True):
        for names, of in zip(OF_A_PHASE, ("times_s", "account", "bytes"), strict=True):
            assert [number(row[name]) for name in names] == [rounded(phase[of][name]) for name in names]
    moved = [number(row["written_bytes"]) for row in project.table("profile/traffic.tsv")]
    assert moved == [flow["written_bytes"] for _, phase in phases for flow in phase["traffic"]]
