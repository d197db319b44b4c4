"""Make sure that the tool is there, compile what it compiles, and note its version: ``index/tool.json``."""

from pathlib import Path

from neurotier.core.files import write_json
from neurotier.run.jobs import prepare_tool
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    tool = prepare_tool(context.settings, context.places, Path(context.snakemake.log[0]))
    write_json(Path(context.snakemake.output.tool), tool)


if __name__ == "__main__":
    run_script(snakemake, main)
