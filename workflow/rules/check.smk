# The check of a node: the state of the tiers as a job sees it there, before anything long is begun.

checked = places.check_table(plan.node_class)


# Only if jobs run on other nodes than this one. The file is removed at the end of the run.
rule mark_tiers:
    output:
        marks=temp(checked.with_name(f"{checked.stem}-marks.json")),
    log:
        LOGS / "mark_tiers/mark_tiers.log",
    params:
        results=RESULTS,
    message:
        "Writing a file on each tier of this machine"
    script:
        "../scripts/mark_tiers.py"


rule check_node:
    input:
        marks=rules.mark_tiers.output if on_cluster else [],
    output:
        table=checked,
    log:
        LOGS / "check_node/check_node.log",
    threads: CORES
    resources:
        runtime=5,
    params:
        results=RESULTS,
        node_class=plan.node_class,
        tiers=settings.to_json()["tiers"],
        in_use=settings.tiers_in_use,
    message:
        "Looking at the tiers from a node"
    script:
        "../scripts/check_node.py"


# The table of the last check is removed at each start of this target.
rule check:
    input:
        table=checked,
    log:
        LOGS / "check/check.log",
    params:
        results=RESULTS,
    message:
        "Checking the tiers"
    script:
        "../scripts/check.py"
