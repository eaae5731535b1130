"""What a command line may choose from is what there is: no list of names of its own."""

from collections.abc import Iterable

import click
import pytest

from tierscope.arch.decoder_memory import ATTENTIONS, RECOMPUTES
from tierscope.arch.kept_activations import RULES
from tierscope.arch.networks import ALIASES, NETWORKS
from tierscope.arch.precision import OPTIMIZER_STATES, PRECISIONS
from tierscope.cli.main import COMMANDS, cli
from tierscope.launch import LAUNCHERS
from tierscope.recording.recorders import RECORDERS
from tierscope.report import export
from tierscope.spec import schema
from tierscope.spec.kinds import Choice
from tierscope.spec.study import DEVICES, Model


def of_key(name: str) -> list[str]:
    """What a study's `workload.model` may say."""
    (field,) = (field for field in schema.fields(Model) if field.name == name)
    assert isinstance(field.meta, schema.Key)
    assert isinstance(field.meta.kind, Choice)
    return list(field.meta.kind.names)


SOURCES: dict[tuple[str, str], Iterable[str]] = {
    ("launch", "launcher"): LAUNCHERS,
    ("trace", "recorder"): RECORDERS,
    ("run", "profiler"): RECORDERS,
    ("train", "model"): [*NETWORKS, *ALIASES],
    ("train", "device"): DEVICES,
    ("train", "precision"): of_key("arithmetic"),
    ("train", "optimizer"): of_key("solver"),
    ("kernels", "device"): DEVICES,
    ("kernels", "precision"): PRECISIONS,
    ("require", "precision"): PRECISIONS,
    ("require", "optimizer"): OPTIMIZER_STATES,
    ("require", "kept"): RULES,
    ("require", "attention"): ATTENTIONS,
    ("require", "recompute"): RECOMPUTES,
    ("analyze", "exports"): export.FORMATS,
}
OWN = {
    "accelerator",
    "basis",
    "epochs",
    "method",
    "minimized",
    "former",
}  # of no registry: what the command itself does


def choices(command: str) -> dict[str, list[str]]:
    """By option; of one that takes several words, those of the first."""
    found = {}
    context = click.Context(cli)
    for parameter in cli.get_command(context, command).params:  # type: ignore[union-attr]
        kind = parameter.type.types[0] if isinstance(parameter.type, click.Tuple) else parameter.type
        if isinstance(kind, click.Choice) and parameter.name:
            found[parameter.name] = list(kind.choices)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_choices_come_from_where_the_things_are(command: str) -> None:
    for option, names in choices(command).items():
        if option not in OWN:
            assert sorted(names) == sorted(SOURCES[command, option]), f"{command}: {option}"


def test_every_source_has_its_option() -> None:
    assert all(option in choices(command) for command, option in SOURCES)
