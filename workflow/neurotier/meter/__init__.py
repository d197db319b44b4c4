"""The meter: what a command or a function costs, for its whole process tree, and where its wall time goes.

``measure``     run and measure: the library calls
``tree``        the process tree: started, watched, ended, and reaped to the last descendant
``exits``       exact waits and bytes from the kernel's exit records (taskstats), where the process is allowed them
``records``     those records, summed up the tree
``sampling``    the same waits by sampling live threads, where it is not; states of threads, everywhere
``activity``    how long some thread was active
``pressure``    stall information of the control group or of the machine
``usage``       the figures, each group with its source, and the account of wall time
``own``         the cost of the measuring process itself since it was started
``function``    a Python function as a phase
``traffic``     bytes and files per storage tier
``residency``   how much of the inputs is in the page cache
``command``     ``neurotier meter``; ``summary`` is what it prints

The package imports little and late: ``neurotier meter -- true`` should cost little more than ``true``.
"""
