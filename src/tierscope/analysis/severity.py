"""How severe each kind of finding is, and the order in which findings are shown.

A terminal shows only the first few findings, so this order decides what a reader in a hurry sees. JSON keeps all of them.
"""

from collections import Counter
from collections.abc import Iterable

from tierscope.analysis.wording import Finding
from tierscope.units import counted

CRITICAL, WARNING, NOTE = SEVERITIES = ("critical", "warning", "note")

_CRITICAL = (  # the numbers are incomplete or wrong, the recommendation is impossible, or the goal is missed
    *(
        "partial",
        "inert_key",
        "does_not_fit",
        "no_point_fits",
        "nothing_recorded",
        "running",
        "ended_command",
        "failed_command",
    ),
    *("low_coverage", "elsewhere", "unrecorded", "lost_ops", "damaged", "page_cache_speed"),
    *("unreadable_logs", "damaged_logs", "negative_times", "impossible_ranks", "long_meta", "partial_logs"),
    *(
        "no_data_files",
        "unknown_paths",
        "not_identified",
        "nothing_fits",
        "batch_too_large",
        "nothing_read",
        "same_loss",
    ),
    *("probe_warm_reads", "goal_missed", "epoch_goal_missed", "au_goal_missed", "goal_unsure", "goal_unknown"),
    *("case_goal_missed", "case_epoch_goal_missed"),
)
_NOTES = (  # how to read the numbers; nothing has to be done
    *("emulated", "simulated", "trimmed", "sleeping_compute", "rereads_found", "one_pass"),
    *("outside", "lost_rows", "cut", "grouped_by_start", "broken_lines", "outside_epochs"),
    *("idle_beyond_ops", "idle_beyond_bytes", "stops_mattering", "sampled_operations"),
    *("layout_drawn", "busiest_station", "staging_pays", "staging_never_pays", "fits_memory", "first_epoch_waits"),
    *("device_bound", "from_peaks", "shuffle_local_enough"),
    *("shuffle_chunk_enough", "shuffle_io_saved", "shuffle_io_not_saved", "probe_own_cost", "probe_over_budget"),
    *("probe_warm_metadata", "goal_met", "epoch_goal_met", "au_goal_met", "several_cases"),
    *("different_data", "no_epochs"),
)
_WARNINGS = (  # the numbers may mislead, or something costs time
    *("capacity_unknown", "warm_pages", "unknown_pages", "warm_storage", "same_device", "warm_metadata", "not_evicted"),
    "starts_of_workers",
    *("late", "straggler", "straggling_node", "overhead", "threads", "decode", "checkpoint_share"),
    "checkpoint_waits",
    *("checkpoints_not_simulated", "writes_as_reads", "epochs_unsure", "epochs_by_opens", "mapped"),
    *("coverage_unknown", "wall_processes", "under_way", "still_running", "unemulated", "scattered", "root_tier"),
    *("other_paths", "standard_streams", "program_files", "lone_workers", "shared_files", "cut_logs", "no_names"),
    "several_steps",
    *(
        "missed_by_profiler",
        "reads_only",
        "metadata_dominated",
        "metadata_of_writes",
        "slow_process",
        "slow_unplaced",
        "slow_node",
    ),
    *("unbalanced_tiers", "tier_not_used", "small_files", "small_opens", "stdio_reads", "small_requests"),
    *("small_transfers", "mostly_small", "random_reads", "read_again", "one_server", "large_on_one_server"),
    *("idle_servers", "bottleneck_moves", "beyond_ops", "beyond_bytes", "no_ceilings", "rough_bound"),
    *(
        "storage_limits",
        "storage_unknown",
        "step_implausible",
        "less_than_a_step",
        "storage_unclear",
        "storage_uncertain",
        "beyond_system",
        "step_extrapolated",
        "loader_limits",
        "training_waits",
        "training_wait_unclear",
        "training_wait_unknown",
    ),
    *("input_matters", "few_repetitions", "low_utilisation", "sample_repeated", "shuffle_local_costs"),
    *("shuffle_few_seeds", "probe_unknown_pages", "probe_at_least", "probe_few_repetitions", "probe_no_time"),
    *("probe_no_room", "probe_one_size", "probe_misfit", "probe_slow_alone", "probe_same_device", "probe_left_behind"),
    *(
        "hidden",
        "storage_hidden",
        "storage_staged",
        "training_waits_little",
    ),  # what follows about I/O is not worth money
    *("no_marks", "one_point", "upper_bound", "assumed_samples"),
)
SEVERITY = {
    **dict.fromkeys(_CRITICAL, CRITICAL),
    **dict.fromkeys(_WARNINGS, WARNING),
    **dict.fromkeys(_NOTES, NOTE),
}


def severity_of(finding: Finding) -> str:
    """A kind that nobody has ranked is never hidden behind one that somebody has. A goal that counts as met, and may be missed, is no missed goal."""
    if finding.kind == "goal_unsure" and finding.evidence["decided"] == "met":
        return WARNING
    return SEVERITY.get(finding.kind, CRITICAL)


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Most severe first; findings of equal severity keep their order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(severity_of(finding)))


def count_by_severity(findings: Iterable[Finding]) -> str:
    """For example `1 critical, 2 warnings`."""
    counts = Counter(map(severity_of, findings))
    return ", ".join(
        f"{counts[name]} critical" if name == CRITICAL else counted(counts[name], name)
        for name in SEVERITIES
        if counts[name]
    )
