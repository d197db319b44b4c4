# Container images: built, pulled or taken as they are, once, and placed on the images tier; only with --sdm apptainer.


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
