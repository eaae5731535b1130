"""Descriptions: decoded from anything, or refused with one line that names the field; version 1 is read as ever."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec.inspect as structs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.traces import TIERS, described_by, traced
from tierscope.errors import ResultError
from tierscope.output.store import RunStore, read_about
from tierscope.trace.decode import decode_command, decode_description, encode, wrong_field
from tierscope.trace.description import Description, Imported, Measured, Simulated, Traced
from tierscope.trace.trace import SCHEMA_VERSION, RunKey
from tierscope.trace.upgrade import added_after, upgraded

RESULTS = Path(__file__).parent.parent / "golden" / "results"
KINDS = {
    "measured": Measured,
    "first_touch": Measured,
    "profiled": Measured,
    "trained": Measured,
    "simulated": Simulated,
    "simulated_events": Simulated,
    "traced": Traced,
    "imported_darshan": Imported,
    "imported_dftracer": Imported,
}


def first_version(name: str) -> dict[str, Any]:
    """The description of a result that version 0.1.0 made."""
    plain = read_about(RunStore(str(RESULTS / name)).path(RunKey(0, 1)))
    assert plain["schema_version"] == 1
    return plain


def decoded(plain: dict[str, Any]) -> Description:
    return decode_description(plain, "mend it")


def stored(about: Description) -> dict[str, Any]:
    """As it lies in a file."""
    plain: dict[str, Any] = json.loads(json.dumps(encode(about)))
    return plain


@pytest.mark.parametrize("name", KINDS)
def test_results_of_the_first_version_are_read(name: str) -> None:
    plain = first_version(name)
    before = copy.deepcopy(plain)
    about = decoded(plain)
    assert type(about) is KINDS[name]
    assert about.kind == plain["kind"]
    assert [tier.name for tier in about.tiers] == [tier["name"] for tier in plain["tiers"]]
    assert plain == before  # it is not touched


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_is_read_as_it_was(name: str) -> None:
    about = decoded(first_version(name))
    assert stored(about)["schema_version"] == SCHEMA_VERSION
    assert decoded(stored(about)) == about


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("version", [2, 3])
def test_versions_before_coverage_are_read(name: str, version: int) -> None:
    """As they were written: without fields that came later."""
    about = decoded(first_version(name))
    plain = {**stored(about), "schema_version": version}
    plain.pop("coverage", None)
    if version == 2 and plain["own_cost"]:
        del plain["own_cost"]["relative_stat_seconds"], plain["own_cost"]["foreign_open_seconds"]
    assert decoded(plain) == about
    if KINDS[name] in (Measured, Traced):
        with pytest.raises(ResultError, match="coverage is missing"):
            decoded({**plain, "schema_version": 4, "own_cost": None})


def of_version_4(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: of_version_4(value) for name, value in plain.items() if name not in added_after(4)}
    return [of_version_4(value) for value in plain] if isinstance(plain, list) else plain


@pytest.mark.parametrize("name", [*KINDS, "trained"])
def test_the_version_before_loaders_is_read(name: str) -> None:
    about = decoded(first_version(name))
    older = {**of_version_4(stored(about)), "schema_version": 4}
    assert decoded(older) == about


def of_version_3(plain: Any) -> Any:
    """What a result of that version has: none of the fields that came later, and folders instead of prefixes."""
    if isinstance(plain, list):
        return [of_version_3(value) for value in plain]
    if not isinstance(plain, dict):
        return plain
    later = added_after(3) if "suggestion" in plain else added_after(3) - {"tier"}  # which shared files had before
    older = {name: of_version_3(value) for name, value in plain.items() if name not in later}
    if "prefixes" in plain and "suggestion" in plain:
        older["folders"] = [["/data", 7]]
    return older


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["imported_darshan", "imported_dftracer", "profiled"])
def test_imports_of_later_versions_are_read_too(name: str, version: int) -> None:
    plain = {**of_version_3(stored(decoded(first_version(name)))), "schema_version": version}
    about = decoded(plain)
    facts = about.facts if isinstance(about, Imported) else about.logs.facts  # type: ignore[union-attr]
    assert [(one.path, one.bytes, one.seconds) for one in facts.unknown.prefixes] == [("/data", 7, None)]
    assert facts.unknown.tier is None
    assert decoded(stored(about)) == about
    with pytest.raises(ResultError, match=r"streams is missing|prefixes is missing|folders is an unknown field"):
        decoded({**plain, "schema_version": SCHEMA_VERSION})


@pytest.mark.parametrize("name", ["simulated", "trained"])
def test_versions_before_spreads_of_epochs_are_read(name: str) -> None:
    about = decoded(first_version(name))
    later = {"epoch_spread", "device_memory_bytes", "calibrated"}
    plain = {key: value for key, value in stored(about).items() if key not in later}
    if plain["training"]:
        plain["training"] = {key: value for key, value in plain["training"].items() if key not in later}
    assert decoded({**plain, "schema_version": 5}) == about


def test_the_version_before_drawn_layouts_is_read() -> None:
    about = decoded(first_version("simulated"))
    plain = stored(about)
    del plain["drawn_layouts"]
    assert decoded({**plain, "schema_version": 6}) == about
    with pytest.raises(ResultError, match="drawn_layouts is missing"):
        decoded(plain)


MAPS = (
    *("spread", "hit_rate", "sweep", "packages", "filesystems", "phases", "mapped", "habits"),
    *("partial_modules", "other_calls"),
)  # whose keys are data


def fields(value: Any, path: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every object of a description, each of its names, and where that is."""
    if isinstance(value, dict):
        for name, part in value.items():
            place = f"{path}.{name}" if path else name
            if path.rpartition(".")[2] not in MAPS:
                yield value, name, place
            yield from fields(part, place)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from fields(part, f"{path}[{index}]")


@pytest.mark.parametrize("name", KINDS)
def test_no_field_may_be_missing_and_none_may_be_added(name: str) -> None:
    """One with a default, too: "emulated", left out, would turn emulated times into those of a machine."""
    whole = stored(decoded(first_version(name)))
    places = [place for _, _, place in fields(whole)]
    for number, place in enumerate(places):
        if place == "schema_version":
            continue
        plain = copy.deepcopy(whole)
        inside, missing, _ = list(fields(plain))[number]
        del inside[missing]
        with pytest.raises(ResultError, match="kind" if missing == "kind" else f"{missing} is missing"):
            decoded(plain)
    if name == "measured":
        plain = copy.deepcopy(whole)
        plain["provenance"]["colour"] = "blue"
        with pytest.raises(ResultError, match=r"provenance\.colour is an unknown field"):
            decoded(plain)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    elif value is not None:
        yield value


@pytest.mark.parametrize("name", KINDS)
def test_nothing_that_was_known_is_lost(name: str) -> None:
    """Every value of version 1 is somewhere in version 2; a few are told apart in another way."""
    plain = first_version(name)
    new = list(leaves(upgraded({key: value for key, value in plain.items() if key != "schema_version"})))
    for value in leaves(plain):
        assert value in new


@pytest.mark.parametrize("kind", ["measured", "simulated", "traced", "imported"])
def test_as_little_as_the_first_version_asked_for_is_enough(kind: str) -> None:
    needed: dict[str, Any] = {"kind": kind, "sweep": {}, "tiers": [{"name": "gfs", "prefixes": []}]}
    more: dict[str, dict[str, Any]] = {
        "simulated": {"spread": {}},
        "traced": {"command": [], "damaged_files": [], "mapped": {}},
    }
    about = described_by({**needed, **more.get(kind, {})})
    assert about.kind == kind
    assert about.provenance is None


def test_one_without_a_kind_was_measured() -> None:
    assert isinstance(described_by({"sweep": {}, "tiers": []}), Measured)


def test_a_command_under_another_profiler_keeps_its_end() -> None:
    about = described_by(
        {"kind": "imported", "sweep": {}, "tiers": [], "exit_code": 3, "recorder": "darshan", "command": ["a b", "c"]}
    )
    assert isinstance(about, Imported)
    assert about.command == "'a b' c"
    assert about.recorded is not None
    assert (about.recorded.exit_code, about.recorded.recorder) == (3, "darshan")


def test_a_command_that_the_first_version_traced_is_collected() -> None:
    tiers = [{"name": "gfs", "emulated": False, "prefixes": ["/gfs"]}]
    plain = {"schema_version": 1, "kind": "traced", "recorder": "builtin", "command": ["true"], "exit_code": None}
    about = decode_command({**plain, "sweep": {}, "tiers": tiers, "epochs": "rereads", "ops": True}, "mend it")
    assert (about.recorder, about.command, about.exit_code) == ("builtin", ("true",), None)
    assert (about.epochs, about.ops, about.tiers[0].prefixes) == ("rereads", True, ("/gfs",))


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Expected `int`, got `str` - at `$.tiers[0].name`", "tiers[0].name must be int, is str"),
        ("Expected `float` >= 0.0 - at `$.spread[...][1]`", "spread[...][1] must be float >= 0.0"),
        ("Expected `int`, got `str` - at `key` in `$.spread`", "a key of spread must be int, is str"),
        ("Object missing required field `x` - at `$.logs.facts`", "logs.facts.x is missing"),
        ("Object missing required field `kind`", "kind is missing"),
        ("Object contains unknown field `z`", "z is an unknown field"),
        ("Invalid value 'wished' - at `$.kind`", "kind = 'wished' is not known"),
        ("Number out of range - at `$.point`", "point is a number out of range"),
        ("Expected `object`, got `array`", "it must be object, is array"),
        ("time must have a time zone - at `$.provenance`", "provenance.time must have a time zone"),
        ("something new", "something new"),
    ],
)
def test_the_line_begins_with_the_field(message: str, line: str) -> None:
    assert wrong_field(message) == line


def stored_results() -> dict[str, dict[str, Any]]:
    """Valid descriptions of this version, of every kind."""
    return {name: stored(decoded(first_version(name))) for name in KINDS}


WHOLE: dict[str, dict[str, Any]] = {
    **stored_results(),
    "first version, measured": first_version("first_touch"),
    "first version, profiled": first_version("profiled"),
    "first version, traced": {"schema_version": 1, "sweep": {}, **traced(processes=[{"lanes": 1, "rank": None}])},
    "first version, imported": first_version("imported_darshan"),
    "first version, simulated": first_version("simulated"),
}
GARBAGE = st.sampled_from(
    [None, True, False, 0, -1, 1, 2**31, 2**62, 2**63, 2**64, 10**400, 0.5, -1.0, math.nan, math.inf, -math.inf, 1e308]
) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("\ud800") | st.just("\0"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("\ud800"), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    return mutate(draw, copy.deepcopy(WHOLE[draw(st.sampled_from(sorted(WHOLE)))]))


def mutate(draw: st.DrawFn, plain: dict[str, Any]) -> dict[str, Any]:
    """One to three changes at any depth: a part dropped, replaced, or added."""
    for _ in range(draw(st.integers(1, 3))):
        part: Any = plain
        for _ in range(draw(st.integers(0, 4))):
            parts = list(part.values()) if isinstance(part, dict) else part
            deeper = [each for each in parts if isinstance(each, dict | list) and each]
            if not deeper:
                break
            part = draw(st.sampled_from(deeper))
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        key = draw(st.sampled_from(keys))
        match draw(st.sampled_from(["drop", "replace", "add"])):
            case "drop" if len(part) > 1:
                del part[key]
            case "add" if isinstance(part, dict):
                part[draw(st.text(max_size=5))] = draw(GARBAGE)
            case _:
                part[key] = draw(GARBAGE)
    return plain


def decoded_or_line(plain: dict[str, Any]) -> Description | str:
    """The line with which it is refused. Any other error is a bug."""
    try:
        return decoded(plain)
    except ResultError as error:
        return str(error)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_any_change_is_refused_with_a_line_or_leaves_a_description(plain: dict[str, Any]) -> None:
    about = decoded_or_line(plain)
    if isinstance(about, str):
        assert "\n" not in about
        assert about.startswith(("its description is damaged: ", "schema version "))
        return
    again = stored(about)
    assert stored(decoded(again)) == again or "NaN" in json.dumps(again)  # NaN is not equal to itself


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["kind", "sweep", "tiers", "command", "facts", "records", "study"]), GARBAGE))
def test_garbage_is_never_a_crash(plain: dict[str, Any]) -> None:
    for version in (1, 3, SCHEMA_VERSION):
        found = decoded_or_line({"schema_version": version, **plain})
        assert not isinstance(found, str) or "\n" not in found


def test_tiers_of_tests_are_names_that_can_be() -> None:
    assert described_by({"tiers": [{"name": name} for name in TIERS]}).tier_names == TIERS


def test_records_of_the_version_before_tell_nothing_of_rereads() -> None:
    whole = encode(described_by(traced()))
    older = {**whole, "schema_version": 3, "records": {k: v for k, v in whole["records"].items() if k != "rereads"}}
    about = decode_description(older, "mend it")
    assert isinstance(about, Traced)
    assert about.records.rereads is None
    with pytest.raises(ResultError, match=r"records\.rereads is missing"):
        decode_description({**older, "schema_version": 4}, "mend it")


def test_a_doubt_that_nobody_knows_is_damage() -> None:
    whole = encode(described_by(traced()))
    told = {"passes": 1, "doubt": "bad weather", "late_reads": 0}
    with pytest.raises(ResultError, match=r"records\.rereads\.doubt = 'bad weather' is not known"):
        decode_description({**whole, "records": {**whole["records"], "rereads": told}}, "mend it")


def fields_of(described: structs.Type, seen: set[type]) -> Iterator[str]:
    """Names of all fields, also of what is inside."""
    if isinstance(described, structs.StructType) and described.cls not in seen:
        seen.add(described.cls)
        for field in described.fields:
            yield field.encode_name
            yield from fields_of(field.type, seen)
    inner = [*getattr(described, "types", ()), *getattr(described, "item_types", ())]
    inner += [getattr(described, name, None) for name in ("item_type", "key_type", "value_type")]
    for part in inner:
        if isinstance(part, structs.Type):
            yield from fields_of(part, seen)


def test_fields_that_were_added_are_listed_with_their_version() -> None:
    """Else results of the version before are called damaged. The stored list is what version 6 had; a new version stores its own."""
    before = set((Path(__file__).parent / "fields-of-version-6.txt").read_text().split())
    now = {
        name for kind in (Measured, Simulated, Traced, Imported) for name in fields_of(structs.type_info(kind), set())
    }
    assert now - before == added_after(6)
    assert before <= now
