"""What people look at: figures, brain mask mosaics and the run report.

Everything here reads finished tables and writes pictures or a page; nothing measures and nothing decides whether
a run is valid. Figures say what they show in their title (``findings``), and the page repeats those sentences.
"""
