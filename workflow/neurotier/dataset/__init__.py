"""The dataset: its clone on the dataset tier, what is in it, and the contents of what is analysed.

``source`` clones, ``sites`` installs the sub-datasets (``addresses`` says from where), ``health`` finds damaged clones,
``tree`` lists files, ``index`` says which of them matter and whose they are, ``bids`` reads their names, ``contents``
gets and drops them, ``unreachable`` sees to sites that could not be had, ``validation`` asks the BIDS validator.
"""
