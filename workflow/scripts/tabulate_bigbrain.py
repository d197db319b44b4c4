"""Tabulate the runs of the incrementation, and make room on its tiers."""

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.room import make_room, remove_blocks
from neurotier.bigbrain.tables import lines_of, tabulate, write_tables
from neurotier.run.scripting import script

with script(snakemake) as context:
    tabulated = tabulate(checked.parent for checked in context.inputs("checked"))
    write_tables(tabulated, context.output("runs").parent)
    plan = BigBrainPlan(context.settings, context.places)
    make_room(plan)
    remove_blocks(plan)
    for line in lines_of(tabulated["runs"]):
        context.say(line)
