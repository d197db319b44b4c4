"""brainextractor on one image. As a program, in a container without neurotier: IMAGE MASK THRESHOLD STEPS.

brainextractor's own command has no option for the number of steps.
"""

import sys
from typing import Any

import nibabel as nib
from brainextractor import BrainExtractor


def brain_mask(head: Any, threshold: float, steps: int) -> Any:
    """The brain mask of a 3D head, as zeros and ones."""
    extractor = BrainExtractor(img=head, bt=threshold)
    extractor.run(iterations=steps)
    return extractor.compute_mask()


def main(image: str, mask: str, threshold: str, steps: str) -> None:
    head = nib.squeeze_image(nib.load(image))
    found = brain_mask(head, float(threshold), int(steps))
    nib.save(nib.Nifti1Image(found.astype("uint8"), head.affine), mask)


if __name__ == "__main__":
    main(*sys.argv[1:])
