# Container images: built, pulled or taken once, and placed on the images tier. Asked for with --sdm apptainer only.


rule obtain_image:
    output:
        image=places.index / "image.json",
    log:
        LOGS / "obtain_image/obtain_image.log",
    params:
        results=RESULTS,
        image=plan.image(),
    message:
        "Obtaining the image {params.image[image]}, and placing it on its tier"
    script:
        "../scripts/obtain_image.py"
