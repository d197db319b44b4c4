# Storage sweeps: grids of block size, processes, pattern and queue depth, measured with fio on any tier.

from neurotier.pages.sweep.figures import figure_names

sweep_figures = figure_names(settings.sweep)


# All cores: nothing else may run beside what is measured. Points are kept one by one; those that are there are not
# measured again, whatever else of the configuration has changed.
rule run_sweep:
    output:
        points=places.sweep / "sweep.tsv",
        headlines=places.sweep / "headlines.tsv",
    log:
        LOGS / "run_sweep/run_sweep.log",
    threads: workflow.cores or 1
    resources:
        probes=1,
    params:
        results=RESULTS,
        sweep=settings.to_json()["sweep"],
        tiers=[settings.tiers[name] for name in settings.sweep.tiers],
    message:
        "Sweeping"
    script:
        "../scripts/run_sweep.py"


rule draw_sweep:
    input:
        rules.run_sweep.output,
    output:
        headlines=report(
            places.sweep / "figures/headlines.svg",
            caption="../report/headlines.rst",
            category="Sweep",
        ),
        heat_maps=report(
            [
                places.sweep / f"figures/{name}.svg"
                for name in sweep_figures["heat_map"]
            ],
            caption="../report/heat_map.rst",
            category="Sweep",
        ),
        lines=report(
            [places.sweep / f"figures/{name}.svg" for name in sweep_figures["lines"]],
            caption="../report/lines.rst",
            category="Sweep",
        ),
        others=[
            places.sweep / f"figures/{name}.{extension}"
            for names in sweep_figures.values()
            for name in names
            for extension in ("png", "tsv")
        ],
    log:
        LOGS / "draw_sweep/draw_sweep.log",
    params:
        results=RESULTS,
    message:
        "Drawing the sweep"
    script:
        "../scripts/draw_sweep.py"


rule write_sweep:
    input:
        rules.run_sweep.output,
        rules.draw_sweep.output,
    output:
        page=report(
            RESULTS / "sweep.html",
            caption="../report/sweep.rst",
            category="Sweep",
        ),
    log:
        LOGS / "write_sweep/write_sweep.log",
    params:
        results=RESULTS,
    message:
        "Writing the report on the sweep"
    script:
        "../scripts/write_sweep.py"
