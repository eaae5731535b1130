"""The picture of the README: `python docs/make_picture.py OUT docs/demo.svg` draws what `tierscope analyze OUT` prints."""

import re
import sys

from rich.console import Console

from tierscope.commands.analyze import analyze, views_of


def main(out: str, picture: str) -> None:
    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=160, file=nowhere, highlight=False)
        console.print(*views_of(analyze(out)))
        drawn = console.export_svg(title="tierscope demo")
    with open(picture, "w", encoding="utf-8") as file:
        file.write(re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL))  # fonts of the reader, not of the network


if __name__ == "__main__":
    main(*sys.argv[1:])
