# A job of each kind that a cluster's profile asks Slurm for, which does nothing: it shows what the cluster refuses.
#   snakemake --snakefile profiles/try.smk --profile profiles/my-site --directory tried

KINDS = [
    "analyze_participants",
    "run_group_level",
    "tabulate_profile",
    "summarize_group",
    "draw_mosaics",
    "write_report",
    "prepare_tool",
    "tabulate_advice",
    "check_node",
    "probe_tier",
    "run_sweep",
    "run_daq",
    "run_ior",
    "run_staging",
    "plan_campaign",
    "run_campaign",
    "run_bigbrain",
]
USUAL = {"participants": 16, "at_once": 1, "minutes_per_participant": 15}
SHARES = {
    key: int(config.get("shares", {}).get(key) or value) for key, value in USUAL.items()
}
ROUNDS = -(-SHARES["participants"] // SHARES["at_once"])


localrules:
    all,


onsuccess:
    print("A job of each kind was accepted, and has run")


rule all:
    input:
        expand("tried/{kind}", kind=KINDS),


for kind in KINDS:
    whole = kind == "analyze_participants"

    rule:
        name:
            kind
        output:
            touch(f"tried/{kind}"),
        threads: SHARES["at_once"] if whole else 1
        resources:
            mem_mb=10**9 if whole else 1000,  # as much as the profile lets a job have
            runtime=SHARES["minutes_per_participant"] * ROUNDS if whole else 30,
        shell:
            "true"
