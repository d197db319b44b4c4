# The profile: CPU, waits and I/O per participant and phase, bytes per tier, makespan and parallelism per run.


rule tabulate_profile:
    input:
        complete=places.complete,
        once=steps_of_sites,
    output:
        profile=report(
            places.profile / "profile.tsv",
            caption="../report/tabulate_profile.rst",
            category="Where the time went",
        ),
        traffic=places.profile / "traffic.tsv",
        runs=places.profile / "runs.tsv",
        steps=places.profile / "steps.tsv",
        jobs=places.profile / "jobs.tsv",
    log:
        LOGS / "tabulate_profile/tabulate_profile.log",
    params:
        results=RESULTS,
    message:
        "Tabulating where the time of participants went"
    script:
        "../scripts/tabulate_profile.py"
