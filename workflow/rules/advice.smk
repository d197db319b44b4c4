# Advice: how long a run will take on which tier, predicted from a probe of the tiers and a calibration.

from neurotier.advice.placements import AdvicePlan

advising = AdvicePlan(plan, CORES)


# The participants of the calibration are analysed by the ordinary rules, and their results are kept.
checkpoint choose_calibration:
    input:
        images=places.images_table,
        others=lambda wildcards: advising.others(),
        checks=ancient(advising.checks),
    output:
        calibration=places.advice / "calibration.json",
    log:
        LOGS / "choose_calibration/choose_calibration.log",
    params:
        results=RESULTS,
        advice=vars(settings.advice),
    message:
        "Choosing whom to analyse first"
    script:
        "../scripts/choose_calibration.py"


# All cores, as for a probe: no other job may run meanwhile, or lose its files from the page cache.
rule rehearse:
    input:
        calibration=places.advice / "calibration.json",
        analysed=lambda wildcards: advising.calibration_markers(calibration()),
    output:
        rehearsal=places.advice / "rehearsal.json",
    log:
        LOGS / "rehearse/rehearse.log",
    threads: CORES
    resources:
        probes=1,
    params:
        results=RESULTS,
        tool=lambda wildcards: advising.plan.tool(),
        cache=lambda wildcards: advising.asked()["cache"],
    message:
        "Analysing participants of the calibration once more, with nothing else running"
    script:
        "../scripts/rehearse.py"


# On a cluster this is a job like those that it predicts, since it examines the node on which it runs.
rule tabulate_advice:
    input:
        checks=ancient(advising.checks),
        images=places.images_table,
        calibration=places.advice / "calibration.json",
        analysed=lambda wildcards: advising.calibration_markers(calibration()),
        probes=lambda wildcards: advising.probe_tables(calibration()),
        rehearsal=advising.rehearsal(),
    output:
        table=places.advice / "advice.tsv",
        basis=places.advice / "basis.json",
    log:
        LOGS / "tabulate_advice/tabulate_advice.log",
    threads: CORES if on_cluster else 1
    params:
        results=RESULTS,
        asked=lambda wildcards: advising.asked(),
    message:
        "Predicting what each placement will take"
    script:
        "../scripts/tabulate_advice.py"


rule advise:
    input:
        table=places.advice / "advice.tsv",
        basis=places.advice / "basis.json",
        page=RESULTS / "advice.html",
    log:
        LOGS / "advise/advise.log",
    params:
        results=RESULTS,
    message:
        "Advising"
    script:
        "../scripts/advise.py"
