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


# Folders that apps read, such as TemplateFlow's: only with app.caches.
rule place_caches:
    output:
        caches=places.index / "caches.json",
    log:
        LOGS / "place_caches/place_caches.log",
    params:
        results=RESULTS,
        caches=lambda wildcards: settings.app.caches,
    message:
        "Placing the folders that the app reads on the images tier"
    script:
        "../scripts/place_caches.py"
