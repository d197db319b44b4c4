# Pages: one rule for each page, which also draws its figures. The page's declaration says what it shows.

from neurotier.pages import PAGES, page_called

# Further inputs of pages. The run report also shows files that no rule makes: facts, failures, and a requested advice.
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
