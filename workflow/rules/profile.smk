# The profile: CPU and I/O time per participant and phase, makespan and parallelism per run.


rule tabulate_profile:
    input:
        records=all_records,
    output:
        profile=report(
            places.profile / "profile.tsv",
            caption="../report/profile.rst",
            category="CPU and I/O",
        ),
        runs=places.profile / "runs.tsv",
    log:
        LOGS / "tabulate_profile/tabulate_profile.log",
    conda:
        "../envs/neurotier.yaml"
    params:
        results=RESULTS,
    message:
        "Tabulating CPU and I/O time per participant"
    script:
        "../scripts/tabulate_profile.py"
