import click

from tierscope.cli import common
from tierscope.cli.showing import all_option


@click.command("demo")
@common.out_option
@common.set_option
@common.quiet_option
@all_option
@common.json_option
def command(out: str | None, settings: tuple[str, ...], quiet: bool, as_json: bool) -> None:
    """Run the built-in demo study: 16 ranks, two emulated tiers, 11 cache rates. Takes less than 45 s."""
    common.run_and_show("demo", common.Given(settings), out, quiet, as_json, ops=False)
