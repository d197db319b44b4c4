"""neurotier: run a BIDS participant analysis on the storage tier you choose, and see where the time went.

The library behind the Snakemake workflow. Every module has one subject and can be imported and tested
without Snakemake; the rules in ``workflow/rules`` only wire files to the functions here.
"""

__version__ = "0.1.0"
