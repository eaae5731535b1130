"""YAML files that ship beside a package's module; the leading comments of each say what it is and whence."""

import itertools
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Shelf:
    package: str

    def names(self) -> list[str]:
        files = resources.files(self.package).iterdir()
        return sorted(entry.name.removesuffix(".yaml") for entry in files if entry.name.endswith(".yaml"))

    def text(self, name: str) -> str:
        return (resources.files(self.package) / f"{name}.yaml").read_text(encoding="utf-8")

    def preamble(self, name: str) -> list[str]:
        """The leading comment lines."""
        return list(itertools.takewhile(lambda line: line.startswith("#"), self.text(name).splitlines()))

    def summary(self, name: str) -> str:
        return self.preamble(name)[0].removeprefix("#").strip()
