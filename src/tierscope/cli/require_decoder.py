"""Options of `tierscope require` that only decoder-only transformers have, and those that they do not have."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from tierscope.cli import common
from tierscope.errors import UserError
from tierscope.spec.kinds import Bandwidth, Fraction, Kind, Seconds


def _limited(kind: Kind) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """The option as it was typed, if it is within the limits of its kind: beyond them quotients are no numbers."""

    def checked(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
        try:
            if text is not None:
                kind.parse(text)
        except ValueError as error:
            raise UserError(f"{option.opts[0]} {text[:_MOST_SHOWN] if text else ''}: {error}") from None
        return text

    return checked


_MOST_SHOWN = 60
_OPTIONS = (
    click.option(
        "--sequence", type=click.IntRange(1, 10**8), help="Transformers: tokens of a sequence; default: as published."
    ),
    click.option("--zero", type=click.IntRange(0, 3), default=0, show_default=True, help="Transformers: ZeRO stage."),
    click.option(
        "--tensor-parallel",
        type=click.IntRange(1, 10**4),
        default=1,
        show_default=True,
        help="Transformers: devices that share every layer.",
    ),
    click.option(
        "--pipeline-parallel",
        type=click.IntRange(1, 10**4),
        default=1,
        show_default=True,
        help="Transformers: pipeline stages.",
    ),
    click.option(
        "--data-parallel", type=click.IntRange(1, 10**5), default=1, show_default=True, help="Transformers: replicas."
    ),
    click.option(
        "--attention",
        type=click.Choice(["flash", "plain"]),
        default="flash",
        show_default=True,
        help="Transformers: whether scores are kept (plain).",
    ),
    click.option(
        "--recompute",
        type=click.Choice(["none", "full"]),
        default="none",
        show_default=True,
        help="Transformers: recompute every layer's activations.",
    ),
    click.option(
        "--efficiency",
        metavar="SHARE",
        callback=_limited(Fraction(above=0)),
        default="40%",
        show_default=True,
        help="Transformers: share of the device's peak that is reached.",
    ),
    click.option(
        "--checkpoint-bandwidth",
        metavar="RATE",
        callback=_limited(Bandwidth(1)),
        help="Transformers: what the job writes checkpoints with, e.g. 10GB/s.",
    ),
    click.option(
        "--mean-time-between-failures",
        metavar="TIME",
        callback=_limited(Seconds(1, 10**10)),
        help="Transformers: of the job, e.g. 12h; for the goodput.",
    ),
)
_COMMON = frozenset({"model", "system", "batch", "precision", "as_json", "all"})
_OWN = (
    *("sequence", "zero", "tensor_parallel", "pipeline_parallel", "data_parallel", "attention", "recompute"),
    *("efficiency", "checkpoint_bandwidth", "mean_time_between_failures"),
)


def decoder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def shown_as_decoder(context: click.Context) -> bool:
    """Answers where the model is a transformer; refuses options of the other kind in either case."""
    from tierscope.commands.require import is_decoder  # noqa: PLC0415

    model = context.params["model"]
    decoder = is_decoder(model)
    typed = [
        parameter
        for parameter in context.command.params
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    for parameter in typed:
        wrong = parameter.name not in {*_COMMON, *_OWN} if decoder else parameter.name in _OWN
        if wrong:
            reason = (
                "is a transformer, which has no such option"
                if decoder
                else "is not a transformer, which this option is for"
            )
            raise UserError(f"{parameter.opts[0]}: {model} {reason}; remove it")
    if decoder:
        _show(model, context, {parameter.name for parameter in typed})
    return decoder


def _show(model: str, context: click.Context, typed: set[str | None]) -> None:
    from tierscope.commands.require import DecoderOptions, decoder_json, require_decoder  # noqa: PLC0415
    from tierscope.report.decoder import decoder_sentences  # noqa: PLC0415

    values = context.params
    given = {name: values[name] for name in ("system", "batch", *_OWN)}
    if "precision" in typed:
        given["precision"] = values["precision"]
    needs = require_decoder(model, DecoderOptions(**given))
    if values["as_json"]:
        common.print_json(decoder_json(needs))
        return
    from rich.text import Text  # noqa: PLC0415

    first, *others = decoder_sentences(needs)
    common.print_rich(Text(first, style="bold"), *map(Text, others))
