"""The dataset: its clone on the dataset tier, the index of its images, and their contents.

``commands`` calls git, git-annex and DataLad, ``addresses`` decides which addresses they may be given. ``source``
clones, installs the sub-datasets, and finds damaged clones, ``index`` lists files and selects those to analyse,
``bids`` reads their names, ``contents`` gets and drops them, ``validation`` runs the BIDS validator.
"""
