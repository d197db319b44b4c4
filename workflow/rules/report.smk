# Pictures of every brain mask, which the run report shows.


# The group table names the derivatives and is newer than all of them. To name them here, too, would slow down the start
# of every command.
rule draw_mosaics:
    input:
        dataset=places.dataset_facts,
        group=places.group / "group.tsv",
    output:
        mosaics=report(
            directory(places.mosaics),
            patterns=["{name}.png"],
            caption="../report/draw_mosaics.rst",
            category="Brain masks",
        ),
    log:
        LOGS / "draw_mosaics/draw_mosaics.log",
    threads: 4
    params:
        results=RESULTS,
    message:
        "Drawing every brain mask on its T1w image"
    script:
        "../scripts/draw_mosaics.py"
