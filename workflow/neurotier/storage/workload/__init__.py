"""What storage workloads share: points in a recorded order, each kept once measured, and progress reports."""
