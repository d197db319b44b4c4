"""Known slips of the paper, as footnotes of the figures that they bear on; the claims say what the logs say of them."""

from __future__ import annotations

CPU_IO = (
    "The text of the paper says that 'Real + Sys' is CPU time and 'User - (Real + Sys)' I/O time. Its plot code"
    " computes CPU = user + sys and I/O = wall - CPU, which is what is shown. On Optane in App Direct mode (DAX) I/O is"
    " copying by the kernel: it counts as sys, hence as CPU."
)
LABELS = (
    "In the names of the logs, tmpfs is Optane in Memory mode (all memory is Optane there) and tmpfsAD is DRAM, the"
    " tmpfs of App Direct mode; the paper's figures call the first one Optane."
)
UNITS = (
    "The paper's Eq. (1) divides MiB by dd's MB/s, and Table I counts dd's 1 GB/s as 1,024 MB/s; both count so here, so"
    " that Eq. (1) is the paper's. In the units that dd means (1 MB = 10^6 bytes), Eq. (1) is 7 % longer on DRAM and"
    " Optane, and 5 % on the SSD and Isilon."
)
SSD = (
    "The paper draws the SSD's estimate with DRAM's write bandwidth and calls the SSD 1.4 times slower than expected."
    " Held against Eq. (1) with the SSD's own, the runs are faster, because writes end in the page cache."
)
SPARK = (
    "The text says once that Spark's writes are 1.4 to 1.6 times longer, and once that they take nearly half; in the"
    " whole repository the first is the reverse."
)
UNKNOWN = (
    "What the model does not know: why Optane in App Direct mode gives 20 % more on the 20 µm image than on the 40 µm"
    " image, how the JVM behaves with more processes than a run has shown (its pauses are taken to grow with the blocks"
    " in flight), and what App Direct gives under load where no run on it is known: one stream says nothing of that."
)
LOGGED = (
    "The file makespan_seconds of a run is the end of the task that is last by name - the start of the first by name,"
    " which is short of latest end - earliest start, which is shown; the table of all conditions has both."
)
SAMPLE = (
    "The paper says 'the entire CoRR dataset'; the table of all conditions says of how many participants the logs are."
)
SLIPS = {
    "table_one": (UNITS,),
    "makespan_40um": (SSD, UNITS, LABELS),
    "makespan": (UNITS, LABELS),
    "phases_20um": (SPARK, LABELS),
    "phases": (LABELS,),
    "predicted": (UNKNOWN,),
    "bids_makespan": (LOGGED, SAMPLE),
    "bids_cpu_io": (CPU_IO, SAMPLE),
}


def slips_of(figure: str) -> tuple[str, ...]:
    """The footnotes of a figure, by its name or that of its kind.

    >>> len(slips_of("makespan_40um")), len(slips_of("makespan_20um")), slips_of("gantt_40um_25")
    (3, 2, ())
    """
    return SLIPS.get(figure, SLIPS.get(figure.partition("_")[0], ()))
