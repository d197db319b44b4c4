"""What works on blocks: the increment of one, and the engines that have it done."""
