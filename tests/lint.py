"""``snakemake --lint`` but for one of its findings, which is stated here once.

It wants a conda environment or a container in every rule. Here all rules share the environment in which Snakemake
itself runs (``requirements.lock``), and a participant job starts the container of its tool itself, so that the start is
measured. Snakemake has no way to say so for all rules: a ``container:`` on top would have it start every job in there.
"""

import sys

from snakemake.cli import main
from snakemake.linting.rules import RuleLinter

if __name__ == "__main__":
    del RuleLinter.lint_missing_software_definition
    sys.argv[1:] = ["--lint"]
    main()
