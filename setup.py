"""What pyproject.toml cannot say: a wheel holds the workflow, too, which lies beside the package in a checkout."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BESIDE = ("workflow", "config", "profiles", "containers")


class BuildWithWorkflow(build_py):
    """Put the workflow where neurotier/core/installed.py looks for it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # then the checkout itself is used
            return
        checkout = Path(self.build_lib, "neurotier", "checkout")
        shutil.rmtree(checkout, ignore_errors=True)  # of an earlier build
        for name in BESIDE:
            shutil.copytree(
                name, checkout / name, ignore=shutil.ignore_patterns("neurotier", "*.egg-info", "__pycache__", "*.png")
            )
        shutil.copy("CITATION.cff", checkout)


setup(cmdclass={"build_py": BuildWithWorkflow})
