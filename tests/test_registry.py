"""What holds for a registry, for every entry of every registry, and for every document that lists their names."""

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_architecture import REGISTRIES, SOURCE
from tests.tiny import tiny
from tierscope.arch.networks import NETWORKS
from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.launch import LAUNCHERS
from tierscope.loaders import LOADERS
from tierscope.recording.recorders import RECORDERS
from tierscope.registry import Entry, Registry
from tierscope.spec.dlio_keys import RULES
from tierscope.storage import STORAGES
from tierscope.units import parse_bytes
from tools.docs.reference import commands, study_keys

ROOT = Path(__file__).parent.parent
THINGS: Registry[object, Entry] = Registry(
    "thing",
    {
        "bytes": Entry("tierscope.units:parse_bytes", "a thing that is there"),
        "optional": Entry("package_that_is_not_there.part:Thing", "needs an extra", extra="things"),
        "broken": Entry("package_that_is_not_there:Thing", "needs a package that no extra installs"),
        "ours": Entry("tierscope.not_there:Thing", "our own bug", extra="things"),
    },
)


def test_listing_names_imports_nothing() -> None:
    assert list(THINGS) == ["bytes", "optional", "broken", "ours"]
    assert "package_that_is_not_there" not in sys.modules


def test_loads_what_the_entry_names() -> None:
    assert THINGS.load("bytes") is parse_bytes


@pytest.mark.parametrize(
    ("name", "hint"),
    [("bites", "did you mean bytes?"), ("zzz", "known: bytes, optional, broken, ours"), ("", "known: bytes")],
)
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        THINGS.load(name)
    assert str(caught.value).startswith(f"thing '{name}' is unknown; {hint}")


def test_a_missing_extra_is_named_with_its_cure() -> None:
    with pytest.raises(UserError) as caught:
        THINGS.load("optional")
    assert str(caught.value) == (
        "thing 'optional' needs the package package_that_is_not_there; pip install 'tierscope[things]'"
    )


@pytest.mark.parametrize("name", ["broken", "ours"])
def test_a_missing_module_that_no_extra_cures_is_our_bug(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        THINGS.load(name)


def registries() -> Iterator[tuple[str, str, Registry[Any, Any]]]:
    """Every registry of the package: its module, its name in it, and itself."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(("tierscope", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        if "Registry(" in path.read_text() and module != "tierscope.registry":
            for name, value in vars(importlib.import_module(module)).items():
                if isinstance(value, Registry):
                    yield module, name, value


ALL = list(registries())
EVERY_ENTRY = [
    pytest.param(module, registry, name, id=f"{label}-{name}") for module, label, registry in ALL for name in registry
]


def test_registries_are_those_that_anyone_may_import() -> None:
    assert {(module, name) for module, name, _ in ALL} >= {
        (module, name)
        for module, names in REGISTRIES.items()
        for name in names
        if name.isupper() and name not in ("ALIASES", "BUILTIN")
    }
    assert {module for module, _, _ in ALL} == set(REGISTRIES)


@pytest.mark.parametrize(("module", "registry", "name"), EVERY_ENTRY)
def test_an_entry_names_a_module_of_its_own_room(module: str, registry: Registry[Any, Any], name: str) -> None:
    room = module.split(".")[1]
    assert registry[name].target.startswith(f"tierscope.{room}.")


@pytest.mark.parametrize(("module", "registry", "name"), EVERY_ENTRY)
def test_an_entry_loads_or_says_which_extra_is_missing(module: str, registry: Registry[Any, Any], name: str) -> None:
    del module
    extra = registry[name].extra
    try:
        assert callable(registry.load(name))
    except UserError as error:
        assert str(error).endswith(f"pip install 'tierscope[{extra}]'")  # noqa: PT017


@pytest.mark.parametrize(("module", "registry", "name"), EVERY_ENTRY)
def test_an_entry_says_in_a_line_when_to_choose_it(module: str, registry: Registry[Any, Any], name: str) -> None:
    del module
    what = registry[name].what
    assert what.isprintable()
    assert len(what) > 10
    assert what[-1] not in ".;"


@pytest.mark.parametrize(("module", "registry", "name"), EVERY_ENTRY)
def test_an_extra_is_one_that_can_be_installed(module: str, registry: Registry[Any, Any], name: str) -> None:
    del module
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert registry[name].extra in (None, *extras)


def test_facts_are_asked_of_the_entries() -> None:
    assert FORMATS.where(lambda form: form.picture) == ("jpeg", "png")
    assert len(FORMATS) == len(list(FORMATS))
    assert "raw" in FORMATS
    with pytest.raises(UserError, match="format 'row' is unknown; did you mean raw"):
        FORMATS["row"]


def test_only_registries_and_the_command_table_import_by_name() -> None:
    """`arch/traced.py` imports what the user names: module:function of their own; `__init__.py` the API, when it is asked for."""
    allowed = {"registry.py", "cli/main.py", "arch/traced.py", "papers/sections.py", "__init__.py"}
    pattern = re.compile(r"import_module\(|__import__\(")
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if pattern.search(path.read_text())}
    assert found == allowed


def test_modules_are_named_in_text_by_their_own_room_only() -> None:
    """As the target of a registry, or as a worker that a room starts (`python -m`)."""
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        if str(place) == "cli/main.py":
            continue
        for room in re.findall(r'"tierscope\.([a-z_]+)\.[a-z_.]+(?::\w+)?"', path.read_text()):
            assert room == place.parts[0], f"{place} names tierscope.{room}"


@pytest.mark.parametrize("choice", [("workload.reader.data_loader", LOADERS), ("workload.model.network", NETWORKS)])
def test_a_study_can_name_what_is_registered(choice: tuple[str, Registry[Any, Any]]) -> None:
    path, registry = choice
    refused = path + "=nonsense"
    with pytest.raises(UserError) as caught:
        tiny(refused)
    listed = str(caught.value).partition("must be one of ")[2].partition(";")[0].split(", ")
    named = [name for name in registry if getattr(registry[name], "by_name", True)]
    assert [name for name in listed if name != "auto"] == named


def test_dlio_names_each_format_once() -> None:
    names = [theirs for form in FORMATS.entries.values() for theirs in form.dlio]
    assert len(names) == len(set(names))
    rule = RULES["dataset.format"]
    assert rule.to == ("workload.dataset.format",)
    assert {"tfrecord", "hdf5", "csv", "npz", "npy", "jpeg", "png", "synthetic", "parquet"} == set(names)


def plain(name: str) -> str:
    """`ResNet-50` as in a command."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def listed(text: str, begin: str, end: str) -> list[str]:
    """The names of one list in a document."""
    (sentence,) = re.findall(re.escape(begin) + "(.*?)" + re.escape(end), text, re.DOTALL)
    names = re.split(r",| and | or ", re.sub(r"\(.*?\)", "", sentence, flags=re.DOTALL))
    return [plain(name) for name in names if plain(name)]


def test_the_document_on_training_lists_every_network() -> None:
    text = (ROOT / "docs" / "training.md").read_text()
    assert listed(text, "those of `tierscope require` (", ")") == list(NETWORKS)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("workload.dataset.format", list(FORMATS)),
        ("workload.model.network", list(NETWORKS)),
        ("workload.reader.data_loader", [name for name in LOADERS if LOADERS[name].framework]),
    ],
)
def test_the_reference_lists_what_is_registered(key: str, names: list[str]) -> None:
    (row,) = re.findall(rf"^\| `{key}` \|.*$", study_keys(), re.MULTILINE)
    assert set(names) <= set(re.findall(r"[\w-]+", row.rpartition("(")[2]))


def test_the_reference_lists_every_launcher_and_profiler() -> None:
    text = commands()
    assert "|".join(LAUNCHERS) in text.replace("\\|", "|")
    for name in RECORDERS.where(lambda recorder: recorder.profiler):
        assert name in text.partition("### run")[2].partition("### generate")[0]


def test_the_document_on_clusters_lists_every_launchers_variables() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`\$.*) \|$", (ROOT / "docs" / "clusters.md").read_text(), re.MULTILINE)
    documented = {name: tuple(re.findall(r"`\$(\w+)`", cell)) for name, cell in rows}
    known = {name: LAUNCHERS.load(name).variables for name in LAUNCHERS}
    assert documented == {name: variables for name, variables in known.items() if variables}


def test_the_document_on_storage_lists_every_kind() -> None:
    assert re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "storage.md").read_text(), re.MULTILINE) == list(STORAGES)
