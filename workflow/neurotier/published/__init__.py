"""The published experiment (Hayot-Sasson, Brown and Glatard 2020), replayed from its raw logs."""
