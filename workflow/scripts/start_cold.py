"""Analyse a participant from an empty page cache: ``advice/cold_start.json``."""

from pathlib import Path

from neurotier.advice.cold_start import measure_cold_start
from neurotier.advice.situation import Situation
from neurotier.core.files import read_json, write_json
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    situation = Situation(context.settings, context.places)
    chosen = read_json(context.input("calibration"))["participants"]
    found = measure_cold_start(situation, chosen, Path(context.snakemake.log[0]).with_name("job.log"))
    write_json(context.output("cold_start"), found)


if __name__ == "__main__":
    run_script(snakemake, main)
