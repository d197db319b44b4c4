"""Make sure that the tool is there, compile what it compiles, and note its version: ``index/tool.json``."""

from pathlib import Path

from neurotier.files import write_json
from neurotier.scripting import Context, run_script
from neurotier.tools import make_tool


def main(context: Context) -> None:
    tool = make_tool(context.settings.tool)
    version = tool.version()
    tool.warm_up()
    write_json(Path(context.snakemake.output.tool), {"name": tool.name, "version": version})


if __name__ == "__main__":
    run_script(snakemake, main)
