"""Tabulate the conditions of the incrementation, published ones among them."""

import socket
from pathlib import Path

from neurotier.pages.bigbrain.tables import write_conditions
from neurotier.run.scripting import script

with script(snakemake) as context:
    runs, predictions = context.input("runs"), context.input("predictions")
    inputs = context.snakemake.input.items()
    published = {name: Path(file) for name, file in inputs if name.startswith("published_")}
    write_conditions(runs, predictions, published, socket.gethostname(), context.output("conditions"))
