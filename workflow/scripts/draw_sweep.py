"""Draw the figures of the sweep."""

from neurotier.run.scripting import Context, run_script
from neurotier.storage.sweep import stages


def main(context: Context) -> None:
    stages.draw_sweep(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
