"""The increment of one block, and the engines that run it for all of them."""
