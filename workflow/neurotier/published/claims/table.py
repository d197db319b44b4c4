"""All claims with their verdicts, as rows of ``published_claims.tsv``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from neurotier.core.tables import Row
from neurotier.published.claims import bids_app, discussion, large_image, small_image
from neurotier.published.claims.facts import Facts
from neurotier.published.claims.judging import UNKNOWN, VERDICTS
from neurotier.published.replay import Replay


def claim_rows(replay: Replay) -> list[Row]:
    """Rows of ``published_claims.tsv``, in the order of the paper."""
    facts = Facts(replay)
    rows = []
    claims = [*small_image.CLAIMS, *large_image.CLAIMS, *discussion.CLAIMS, *bids_app.CLAIMS]
    for claim in sorted(claims, key=lambda claim: claim.place):  # the names of its sections are in their order
        judged = claim.judged(facts)
        rows.append({"place": claim.place, "claim": claim.quote, "found": judged.figures, "verdict": judged.verdict})
    return rows


def counts_text(rows: Sequence[Row]) -> str:
    """How many claims hold, in words.

    >>> counts_text([{"verdict": "holds"}, {"verdict": "contradicted"}, {"verdict": "cannot be told"}])
    'Of 2 claims that these logs can decide, 1 holds, 0 hold partly, 1 is contradicted; 1 cannot be told'
    """
    counts = Counter(row["verdict"] for row in rows)
    holds, partly, against, unknown = (counts[verdict] for verdict in VERDICTS)
    said = f"Of {len(rows) - unknown} claims that these logs can decide, {holds} {'holds' if holds == 1 else 'hold'}"
    said += f", {partly} {'holds' if partly == 1 else 'hold'} partly, {against} {'is' if against == 1 else 'are'}"
    return f"{said} contradicted" + (f"; {unknown} {UNKNOWN}" if unknown else "")
