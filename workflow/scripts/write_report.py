"""Write the self-contained run report, verdict first."""

from neurotier.pages.report import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.write_report(context.settings, context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
