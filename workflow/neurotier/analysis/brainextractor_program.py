"""brainextractor on one image. As a program, in a container without neurotier: IMAGE MASK THRESHOLD STEPS.

brainextractor's own command has no option for the number of steps.
"""

import sys
from typing import Any

import nibabel as nib
import numpy as np
from brainextractor import BrainExtractor
from nibabel.affines import voxel_sizes
from scipy.ndimage import zoom


def brain_mask(head: Any, threshold: float, steps: int) -> Any:
    """The brain in a head of three dimensions, as zeros and ones.

    brainextractor takes every voxel for a cube. If an edge differs by more than 5 % from that of a cube of the same
    volume, it is given the image resampled to such cubes. Where the brain reaches the edge of the image, brainextractor
    reads up to some 99 voxels beyond it, and numba does not check: background is put there, behind the last voxels
    alone, since negative indices count from the end. Edges are from the affine where there is no qform: ``pixdim`` may
    then be out of date.
    """
    edges = np.array(head.header.get_zooms() if head.header["qform_code"] > 0 else voxel_sizes(head.affine))
    edge = np.cbrt(edges.prod())
    if not np.allclose(edges, edge, rtol=0.05):
        cubes = nib.Nifti1Image(zoom(head.get_fdata(), edges / edge, order=1), np.diag([edge, edge, edge, 1]))
        mask = brain_mask(cubes, threshold, steps)
        return zoom(mask, np.divide(head.shape, mask.shape), order=1) >= 0.5
    extractor = BrainExtractor(img=head, bt=threshold)
    extractor.data = np.pad(extractor.data, (0, 99), constant_values=extractor.t2)
    extractor.run(iterations=steps)
    del extractor.data
    return extractor.compute_mask()


if __name__ == "__main__":
    head = nib.squeeze_image(nib.load(sys.argv[1]))
    found = brain_mask(head, float(sys.argv[3]), int(sys.argv[4]))
    nib.save(nib.Nifti1Image(found.astype("uint8"), head.affine), sys.argv[2])
