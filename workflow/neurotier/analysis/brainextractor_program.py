"""Program that runs brainextractor on one image, in a container where neurotier is not: IMAGE MASK THRESHOLD STEPS.

The same calls as the tool's own on the host, so the same voxels; brainextractor's command takes no number of steps.
"""

import sys

import nibabel as nib
import numpy as np


def main(image: str, mask: str, threshold: str, steps: str) -> None:
    from brainextractor import BrainExtractor

    head = nib.load(image)
    if head.ndim > 3:  # trailing axes of length 1, as neurotier has checked
        data = np.asanyarray(head.dataobj)
        head = head.__class__(data.reshape(data.shape[:3]), head.affine, head.header)
    extractor = BrainExtractor(img=head, bt=float(threshold))
    extractor.run(iterations=int(steps))
    nib.save(nib.Nifti1Image(extractor.compute_mask().astype(np.uint8), head.affine), mask)


if __name__ == "__main__":
    main(*sys.argv[1:])
