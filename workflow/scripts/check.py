"""Print the state of the tiers as a node saw it, and fail if one that a run needs is unusable."""

from neurotier.core.errors import TierError
from neurotier.core.quantities import counted
from neurotier.core.tables import read_table
from neurotier.run.node_check import check_lines, problems
from neurotier.run.scripting import script

with script(snakemake) as context:
    table = context.input("table")
    rows = read_table(table, "check")
    for line in check_lines(rows):
        context.say(line)
    wrong = problems(rows)
    for line in wrong:
        context.say(f"neurotier: {line} (on {rows[0]['host']})")
    if wrong:
        raise TierError(f"{counted(len(wrong), 'tier')} in use cannot be used", f"target check, {table}")
