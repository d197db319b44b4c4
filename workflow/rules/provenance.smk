# Derivatives as DataLad datasets (results_dataset: true): saved by one process, when all jobs are over.


# It waits for shares and not for everyone: derivatives that are there are saved, even if others have failed. An app has its group level.
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
