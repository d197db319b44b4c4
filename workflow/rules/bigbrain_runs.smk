# The runs of the BigBrain incrementation on this machine, one after the other with each engine, and their tables.

from neurotier.bigbrain.plan import ENGINE_NAMES


wildcard_constraints:
    run=f"({'|'.join(ENGINE_NAMES)})/[^/]+/[0-9]+/[0-9]+",
    block="[^/]+",
    iteration="[0-9]+",


# Jobs of the engine Snakemake share this resource, so that as many run at once as their run asks for, whatever the
# number of cores.
internals.set_limits(workflow, {"bigbrain_share": bigbrain.shares})


rule make_blocks:
    output:
        manifest=places.bigbrain_blocks("{tier}"),
    log:
        LOGS / "make_blocks/{tier}.log",
    params:
        results=RESULTS,
        asked=bigbrain.blocks_params,
    message:
        "Making blocks on the tier {wildcards.tier}"
    script:
        "../scripts/make_blocks.py"


# One run after the other, once all blocks are made, since nothing else may move data during a measurement. When a run
# is done again, so are the later ones; with ancient(), Snakemake would overlook changes of their own params.
rule begin_increment:
    input:
        blocks=bigbrain.manifests(),
        before=lambda wildcards: bigbrain.before(wildcards.run),
    output:
        plan=places.bigbrain_run("{run}") / "plan.json",
    log:
        LOGS / "begin_increment/{run}.log",
    params:
        results=RESULTS,
        asked=bigbrain.increment_params,
    message:
        "Beginning {wildcards.run}"
    script:
        "../scripts/begin_increment.py"


rule increment_block:
    input:
        plan=places.bigbrain_run("{run}") / "plan.json",
        before=lambda wildcards: bigbrain.iteration_before(
            wildcards.run, wildcards.block, wildcards.iteration
        ),
    output:
        record=places.bigbrain_run("{run}") / "records/{block}_{iteration}.json",
    log:
        LOGS / "increment_block/{run}/{block}_{iteration}.log",
    resources:
        bigbrain_share=lambda wildcards: bigbrain.share(wildcards.run),
    params:
        prefix=lambda wildcards, input: bigbrain.prefix(input.plan, wildcards.block),
    message:
        "Incrementing {wildcards.block}, iteration {wildcards.iteration}"
    shell:
        "{params.prefix}python3 -m neurotier.bigbrain.engines.worker {input.plan:q} {wildcards.block:q}"
        " {wildcards.iteration} {log:q}"


# All cores: nothing else may run during a measurement.
for engine in ("gnu_parallel", "spark"):

    rule:
        name:
            f"run_{engine}"
        input:
            plan=places.bigbrain_run("{run}") / "plan.json",
        output:
            finished=places.bigbrain_run("{run}") / "finished.json",
        log:
            LOGS / f"run_{engine}/{{run}}/run_{engine}.log",
        wildcard_constraints:
            run=f"{engine.replace('_', '-')}/.+",
        threads: CORES
        params:
            results=RESULTS,
        message:
            "Incrementing blocks: {wildcards.run}"
        script:
            "../scripts/run_engine.py"


rule check_increment:
    input:
        plan=places.bigbrain_run("{run}") / "plan.json",
        done=lambda wildcards: in_a_line(bigbrain.done)(wildcards.run),
    output:
        checked=places.bigbrain_run("{run}") / "checked.json",
    log:
        LOGS / "check_increment/{run}.log",
    params:
        results=RESULTS,
    message:
        "Checking every voxel of {wildcards.run}"
    script:
        "../scripts/check_increment.py"


# After the runs, so as not to compute during one. Of the measurements, predictions use only those of the calibration.
rule tabulate_bigbrain:
    input:
        checked=[bigbrain.checked(run) for run in bigbrain.runs],
        calibrations=[bigbrain.checked(run) for run in bigbrain.calibrations],
        probes=bigbrain.probes(),
        blocks=bigbrain.manifests(),
    output:
        phases=places.bigbrain / "bigbrain_phases.tsv",
        runs=places.bigbrain / "bigbrain_runs.tsv",
        spark=places.bigbrain / "bigbrain_spark.tsv",
        predictions=places.bigbrain / "bigbrain_predictions.tsv",
    log:
        LOGS / "tabulate_bigbrain/tabulate_bigbrain.log",
    params:
        results=RESULTS,
    message:
        "Tabulating and predicting the BigBrain incrementation"
    script:
        "../scripts/tabulate_bigbrain.py"
