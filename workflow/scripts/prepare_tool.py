"""Make sure that the tool is there, compile what it compiles, and note its version: ``index/tool.json``."""

from pathlib import Path

from neurotier.run.healing import forget_kept, write_and_keep
from neurotier.run.jobs import prepare_tool
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    forget_kept(context.places, Path(context.snakemake.output.tool))
    tool = prepare_tool(context.settings, context.places, Path(context.snakemake.log[0]))
    write_and_keep(context.places, Path(context.snakemake.output.tool), tool)


if __name__ == "__main__":
    run_script(snakemake, main)
