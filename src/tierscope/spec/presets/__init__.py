"""Studies to start from, one YAML file each beside this module."""

from importlib import resources


def names() -> list[str]:
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in resources.files(__name__).iterdir()
        if entry.name.endswith(".yaml")
    )


def text(name: str) -> str:
    return (resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")


def summary(name: str) -> str:
    """The first comment line of the preset."""
    return text(name).partition("\n")[0].removeprefix("#").strip()
