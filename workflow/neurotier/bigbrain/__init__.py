"""The BigBrain incrementation: read every block of a huge image, add one to each voxel, write it; n times.

The paper's second application (its Algorithm 1), on one's own machine: any tier, several engines, one table.
"""
