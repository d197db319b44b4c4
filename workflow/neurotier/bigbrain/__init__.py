"""The BigBrain incrementation: read every block of a huge image, add one to each voxel, and write it, n times.

This is the paper's second application (its Algorithm 1) on the user's own machine, with any tier and several engines.
"""
