# Pages: one rule each, which draws the figures of the page, too. What it is and shows, its declaration says.

from neurotier.pages import PAGES, page_called

MORE_INPUTS = {
    "advice": {"basis": places.advice / "basis.json"},
    "comparison": {"campaign": lambda wildcards: plan.campaign()},
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
