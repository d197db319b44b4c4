# Derivatives as DataLad datasets (results_dataset: true): saved by one process, when all jobs are over.


# It waits for all shares, but not for every participant: existing derivatives are saved even if others have failed. Of
# an app, it waits for the group level, too.
rule save_derivatives:
    input:
        index=places.images_table,
        descriptions=derivative_descriptions,
        analysed=analysed,
    output:
        saved=places.saved,
    log:
        LOGS / "save_derivatives/save_derivatives.log",
    params:
        results=RESULTS,
    message:
        "Saving the derivatives as DataLad datasets"
    script:
        "../scripts/save_derivatives.py"
