"""The dataset: its clone on the dataset tier, what is in it, and the contents of what is analysed.

``source`` clones and names the sites, ``index`` says which files there are and whose, ``bids`` reads their names,
``contents`` gets and drops them, ``validation`` asks the BIDS validator.
"""
