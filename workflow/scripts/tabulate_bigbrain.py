"""Tabulate the runs of the incrementation."""

from neurotier.bigbrain import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    for line in stages.tabulate(context.settings, context.places):
        context.say(line)


if __name__ == "__main__":
    run_script(snakemake, main)
