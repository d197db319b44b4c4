"""A program that runs brainextractor on one image in a container without neurotier: IMAGE MASK THRESHOLD STEPS.

It makes the same calls as :mod:`neurotier.analysis.tools` on the host, for the same voxels; brainextractor's own
command has no option for the number of steps.
"""

import sys

import nibabel as nib
import numpy as np


def main(image: str, mask: str, threshold: str, steps: str) -> None:
    from brainextractor import BrainExtractor

    head = nib.load(image)
    if head.ndim > 3:  # the other axes have length 1, as neurotier has checked
        data = np.asanyarray(head.dataobj)
        head = head.__class__(data.reshape(data.shape[:3]), head.affine, head.header)
    extractor = BrainExtractor(img=head, bt=float(threshold))
    extractor.run(iterations=int(steps))
    nib.save(nib.Nifti1Image(extractor.compute_mask().astype(np.uint8), head.affine), mask)


if __name__ == "__main__":
    main(*sys.argv[1:])
