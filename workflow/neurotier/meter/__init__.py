"""The meter: what a command or a function costs with its whole process tree, and where its wall time goes.

``measure``     run and measure: the functions that other packages call
``tree``        the process tree: start it, watch it, end it, and reap its last descendant
``exits``       exact waits and bytes from the kernel's exit records (taskstats), if the process may read them
``records``     sums of those records along the tree
``sampling``    the same waits by sampling live threads, if it may not; and the states of threads, always
``activity``    how long at least one thread was active
``pressure``    pressure stall information of the control group or of the machine
``usage``       the figures, each group with its source, and the account of the wall time
``own``         the cost of the measuring process itself since its start
``function``    a Python function as a phase
``traffic``     bytes and files per storage tier
``residency``   how much of the inputs is in the page cache
``command``     ``neurotier meter``; ``summary`` is what it prints

The package imports few modules, and late: ``neurotier meter -- true`` should cost little more than ``true``.
"""
