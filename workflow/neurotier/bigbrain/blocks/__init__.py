"""Blocks of a huge image: synthetic, cut out of a volume or taken from files, and written whole or not at all."""
