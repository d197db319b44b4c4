"""Blocks of a huge image: made up, cut out of a volume or taken from files, and written whole or not at all."""
