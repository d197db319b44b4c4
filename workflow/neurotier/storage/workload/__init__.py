"""What storage workloads share: points in a recorded order, each kept once it is measured, and how they are told."""
