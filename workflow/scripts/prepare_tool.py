"""Make sure that the tool is there, compile what it compiles, and note its version: ``index/tool.json``."""

from neurotier.run.healing import forget_kept, write_and_keep
from neurotier.run.jobs import prepare_tool
from neurotier.run.scripting import script

with script(snakemake) as context:
    forget_kept(context.places, context.output("tool"))
    tool = prepare_tool(context.settings, context.places, context.log)
    write_and_keep(context.places, context.output("tool"), tool)
