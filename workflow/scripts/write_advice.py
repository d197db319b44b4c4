"""Write the page of the advice: ``advice.html``."""

from neurotier.core.files import read_json
from neurotier.core.tables import read_table
from neurotier.pages.advice.page import write_page
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    table = context.input("table")
    rows, basis = read_table(table, "advice"), read_json(context.input("basis"))
    write_page(rows, basis, table, context.input("advised").parent, context.output("page"))


if __name__ == "__main__":
    run_script(snakemake, main)
