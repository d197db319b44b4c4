"""What came of it: conditions of one's own and of the paper in one table, figures, a page."""
