"""The meter: what a command or a function cost, for its whole process tree, and where its wall time went.

``measure``     run and measure: the library calls
``tree``        the process tree: born, watched, told to stop, reaped to the last descendant
``exits``       exact waits and bytes from the kernel's exit records (taskstats), where the process may listen
``records``     those records, summed up the tree; ``netlink`` is how the kernel is asked for them
``sampling``    the same waits by looking at live threads, where it may not; states of threads, everywhere
``pressure``    stall information of the control group or of the machine
``usage``       the figures, each group with its source, and the account of wall time
``own``         what the measuring process itself has cost since its birth
``function``    a Python function as a phase
``traffic``     bytes and files per storage tier
``residency``   how much of the inputs is in the page cache
``command``     ``neurotier meter``; ``summary`` is what it prints

The package imports little and late: ``neurotier meter -- true`` should cost little more than ``true``.
"""
