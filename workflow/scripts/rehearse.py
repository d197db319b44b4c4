"""Analyse participants of the calibration once more, for what it does not show: ``advice/rehearsal.json``."""

from pathlib import Path

from neurotier.advice.situation import Situation
from neurotier.core.files import read_json, write_json
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    situation = Situation(context.settings, context.places)
    chosen = read_json(context.input("calibration"))["participants"]
    log = Path(context.snakemake.log[0]).with_name("job.log")
    write_json(context.output("rehearsal"), situation.rehearse(chosen, context.snakemake.params.parallelism, log))


if __name__ == "__main__":
    run_script(snakemake, main)
