"""The dataset: its clone on the dataset tier, the index of its images, and their contents.

``source`` clones and deals with sites that could not be cloned, ``sites`` installs the sub-datasets, ``addresses``
checks where they come from, ``health`` finds damaged clones, ``tree`` lists files, ``index`` selects those to analyse,
``bids`` reads their names, ``contents`` gets and drops them, ``validation`` runs the BIDS validator.
"""
