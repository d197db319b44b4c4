"""Check one site with the BIDS validator, once: ``index/[SITE/]validation.json``."""

from pathlib import Path

from neurotier.analysis.steps import measured, write_step
from neurotier.core.files import write_json
from neurotier.dataset.validation import check, say_issues, validate
from neurotier.run.jobs import ensure_clone
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    site = context.snakemake.wildcards.site_folder.rstrip("/")
    folder = ensure_clone(context.settings, context.places, site, context.say).path / site
    found, usage = measured(lambda: validate(folder, site or "dataset"))
    write_step(context.places, "validate_dataset", site, site or "dataset", [("validate", usage)])
    context.say(say_issues(found, site or "dataset"))
    check(found, site or "dataset", context.settings.dataset.validation)
    write_json(Path(context.snakemake.output.issues), found)


if __name__ == "__main__":
    run_script(snakemake, main)
