"""Write the comparison report."""

from neurotier.pages.comparison import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.write_comparison(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
