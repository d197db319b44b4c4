"""What every room stands on: errors, files, settings, tiers, tables, words for quantities. Imports no other room."""
