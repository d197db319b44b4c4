"""The base of all other packages: errors, files, settings, tiers, tables, quantities in words. Imports none of them."""
