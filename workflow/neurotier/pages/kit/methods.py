"""Methods: what a paper says of the software, with versions and references."""

from __future__ import annotations

from collections.abc import Mapping

from neurotier.core.configuration import read_yaml
from neurotier.core.installed import ROOT

REFERENCES = {
    "snakemake": "Mölder et al. (2021), F1000Research 10, 33",
    "datalad": "Halchenko et al. (2021), Journal of Open Source Software 6(63), 3262",
    "brainextractor": "after Smith (2002), Human Brain Mapping 17(3), 143-155",
}
BIDS = "BIDS (Gorgolewski et al., 2016, Scientific Data 3, 160044)"
APPTAINER = "Apptainer (Kurtzer, Sochat and Bauer, 2017, PLOS ONE 12(5), e0177459)"


def software(versions: Mapping[str, str]) -> str:
    """Programs with their versions, and what to cite.

    >>> software({"neurotier": "1.0", "snakemake": "9.27"})
    'neurotier 1.0 (the neurotier authors, 2026) and snakemake 9.27 (Mölder et al. (2021), F1000Research 10, 33)'
    """
    references = {"neurotier": own_reference(), **REFERENCES}
    cited = {name: f" ({references[name]})" if name in references else "" for name in versions}
    *most, last = [f"{name} {version}{cited[name]}" for name, version in versions.items()] or ["software not known"]
    return " and ".join([", ".join(most), last] if most else [last])


def own_reference() -> str:
    """Authors, year and address of neurotier as ``CITATION.cff`` has them."""
    entry = read_yaml((ROOT / "CITATION.cff").read_text())
    authors = [one.get("name") or f"{one['given-names']} {one['family-names']}" for one in entry["authors"]]
    known = [*authors, str(entry["date-released"])[:4], entry.get("url") or entry.get("repository-code")]
    return ", ".join(filter(None, known))
