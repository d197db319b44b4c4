"""Make the demonstration dataset: a real DataLad dataset shaped like CoRR, from the settings under ``demo``."""

from neurotier.core.files import exclusive
from neurotier.core.private import make_private
from neurotier.demo.dataset import make_demo_dataset
from neurotier.run.scripting import script

with script(snakemake) as context:
    settings = context.settings.demo
    folder = context.places.demo(settings)
    make_private(folder.parent.absolute())
    with exclusive(folder):
        if not folder.exists():  # an existing one is complete, and its name stands for these settings
            make_demo_dataset(folder, settings, context.say)
    context.write_json("facts", {"dataset": folder.name, **vars(settings)})
