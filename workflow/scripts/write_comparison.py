"""Write the comparison report."""

from neurotier.pages.comparison.page import write_page
from neurotier.run.campaign.comparing import lacking
from neurotier.run.compared import read_comparison_tables
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    compared = read_comparison_tables(context.input("runs").parent)
    left = "".join(lacking(plan) for plan in context.inputs("campaign"))
    write_page(compared, context.inputs("figures")[0].parent, context.output("page"), left)


if __name__ == "__main__":
    run_script(snakemake, main)
