"""A tender: the study that an option is, the figures that it needs of storage, and the test that a vendor's machine has to pass."""

from dataclasses import replace

from tierscope.jsonable import JsonObject
from tierscope.predict.costs import places
from tierscope.predict.exploration import Combination
from tierscope.predict.plan_json import combination_json
from tierscope.predict.to_json import goal_json
from tierscope.report.folder import json_bytes
from tierscope.report.plans import cost_text
from tierscope.spec import dump
from tierscope.spec.goal import IO, Goal, GoalKind
from tierscope.spec.study import Study, Tier
from tierscope.units import about_bytes, counted, format_bandwidth, format_bytes, format_rate, format_seconds

KIND = "tender"
NAMES = ("study.yaml", "required.json", "accept.sh", "README.md")
_SCHEMA_VERSION = 1
_RATES = ("bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth")


def tender_files(study: Study, option: Combination, goal: Goal) -> dict[str, bytes]:
    """By name. `study`: as `tendered_study` makes it."""
    required = json_bytes(required_json(study, option, goal))
    texts = (_script(goal).encode(), _readme(study, option, goal).encode())
    return dict(zip(NAMES, (dump.to_yaml(study).encode(), required, *texts), strict=True))


def tendered_study(study: Study, goal: Goal) -> Study:
    """As it runs on a real machine: nothing is emulated there."""
    tiers = tuple(
        replace(tier, emulate=False, storage="directory" if tier.storage == "emulated" else tier.storage)
        for tier in study.system.tiers
    )
    return replace(study, goal=goal, cases=(), sweep=(), system=replace(study.system, tiers=tiers))


def required_json(study: Study, option: Combination, goal: Goal) -> JsonObject:
    """Base units: bytes, seconds, operations per second."""
    return {
        "schema_version": _SCHEMA_VERSION,
        "kind": KIND,
        "goal": goal_json(goal),
        "nodes": study.system.nodes,
        "ranks_per_node": study.system.ranks_per_node,
        "tiers": {tier.name: dict(_figures(tier, study)) for tier in study.system.tiers},
        "simulated": combination_json(option, goal),
    }


def _figures(tier: Tier, study: Study) -> list[tuple[str, float]]:
    """What storage has to have, of one and of all of them."""
    path = f"system.tiers.{tier.name}"
    devices = places(study, f"{path}.servers")
    figures: list[tuple[str, float]] = [("devices", devices), ("servers", tier.servers)]
    if tier.capacity is not None:
        figures.append(("capacity", tier.capacity))
    if tier.metadata_ops is not None:
        figures += [("metadata_servers", tier.metadata_servers), ("metadata_ops", tier.metadata_ops)]
    if tier.read_ops is not None:
        figures.append(("read_ops", tier.read_ops))
    figures += [(name, rate) for name in _RATES if (rate := getattr(tier, name)) is not None]
    if tier.bandwidth is not None:
        figures.append(("bandwidth_in_all", tier.bandwidth * places(study, f"{path}.bandwidth")))
    if tier.latency:
        figures.append(("latency", tier.latency))
    return figures


def _shown(name: str, value: float) -> str:
    if "bandwidth" in name:
        return format_bandwidth(value)
    if name.endswith("_ops"):
        return format_rate(value)
    if name == "capacity":
        return format_bytes(int(value))
    return format_seconds(value) if name == "latency" else f"{value:,.0f}"


def goal_argument(goal: Goal) -> str:
    """As `--goal` takes it."""
    text = GoalKind().format(goal)
    return f"{IO}={text}" if goal.kind == IO else text


def _script(goal: Goal) -> str:
    return f"""#!/bin/sh
# Acceptance test. Exit code 0: passed; 1: failed, the goal is missed; any other: the test could not run.
# OUT is the results directory. LAUNCH starts ranks on all nodes, e.g. LAUNCH=srun (docs/clusters.md).
set -eu
cd "$(dirname "$0")"
out="${{1:-results}}"
${{LAUNCH:-}} tierscope run study.yaml --out "$out"
exec tierscope analyze "$out" --goal '{goal_argument(goal)}'
"""


def _unpriced(option: Combination) -> str:
    paths = ", ".join(path.removeprefix("system.tiers.") for path in option.unpriced)
    return f" (no price was given for {paths})" if paths else ""


def _readme(study: Study, option: Combination, goal: Goal) -> str:
    dataset, system = study.workload.dataset, study.system
    low, high = option.interval(goal.kind)
    rows = [
        f"| {tier.name} | {name.replace('_', ' ')} | {_shown(name, value)} |"
        for tier in system.tiers
        for name, value in _figures(tier, study)
    ]
    held = [
        f"- {room.tier} must hold {about_bytes(room.needed)} of data {room.where}"
        + (f" ({room.text})" if room.text else "")
        for room in option.feasibility.tiers
        if room.needed
    ]
    cost = (
        ""
        if option.cost is None
        else f"\nEstimated cost in addition to the unchanged study: {cost_text(option)}{_unpriced(option)}.\n"
    )
    return "\n".join(
        [
            f"# Tender: {study.study}",
            "",
            f"Goal: {goal.text}, with {counted(dataset.num_files_train, f'{dataset.format} file', grouped=True)} of {about_bytes(dataset.record_length_bytes * dataset.num_samples_per_file)}, "
            f"read by {counted(system.ranks, 'rank', grouped=True)} on {counted(system.nodes, 'node', grouped=True)}.",
            "",
            f"Simulated from the figures below, not measured: {goal.shown(option.value(goal.kind))} "
            f"(90 %: {goal.shown(low)} to {goal.shown(high)}); the bottleneck is {option.bottleneck}.",
            cost,
            "## Required figures",
            "",
            "| tier | figure | at least (latency: at most) |",
            "|---|---|---|",
            *rows,
            "",
            *held,
            "",
            "## Acceptance test",
            "",
            "Set the paths of the tiers in `study.yaml` to directories on the machine, then run",
            "",
            "```",
            "sh accept.sh OUT",
            "```",
            "",
            f"It runs the study and checks the goal (`{goal_argument(goal)}`) against the measurement. Exit code 0: passed; 1: failed; any other: the test could not run; the last line gives the reason.",
            "",
        ]
    )  # fmt: skip
