"""Derivatives as DataLad datasets: saved by one writer after the jobs, with what is needed to make them again."""
