"""Studies to start from, one YAML file each beside this module; their leading comments say what and whence."""

import itertools
from importlib import resources


def names() -> list[str]:
    files = resources.files(__name__).iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in files if entry.name.endswith(".yaml"))


def text(name: str) -> str:
    return (resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")


def preamble(name: str) -> list[str]:
    """The leading comment lines of the preset."""
    return list(itertools.takewhile(lambda line: line.startswith("#"), text(name).splitlines()))


def summary(name: str) -> str:
    return preamble(name)[0].removeprefix("#").strip()
