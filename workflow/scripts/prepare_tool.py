"""Make sure that the tool works, let it compile its code, and note its version: ``index/tool.json``."""

from neurotier.run.images import prepare_tool
from neurotier.run.scripting import script

with script(snakemake) as context:
    tool = prepare_tool(context.settings, context.places, context.log)
    context.write_json("tool", tool)
