# Pages: one rule each, which draws the figures of the page, too. What it is and shows, its declaration says.

from neurotier.pages import PAGES, page_called

# Of a run the report tells of what is there, too, that no rule makes: facts, failures, and an advice that was asked for.
MORE_INPUTS = {
    "advice": {"basis": places.advice / "basis.json"},
    "bigbrain": bigbrain.published,
    "comparison": {"campaign": lambda wildcards: plan.campaign()},
    "report": {"dataset": places.dataset_facts, "mosaics": places.mosaics},
}

for page in map(page_called, PAGES):

    rule:
        name:
            f"write_{page.name}"
        input:
            **page.inputs(RESULTS),
            **MORE_INPUTS.get(page.name, {}),
        output:
            **page.outputs(RESULTS, settings, report),
        log:
            LOGS / f"write_{page.name}/write_{page.name}.log",
        params:
            results=RESULTS,
            page=page.name,
        message:
            f"Writing {page.name}.html"
        script:
            "../scripts/write_page.py"
