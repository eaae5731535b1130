"""Plain data to descriptions and back. Nothing that was read is trusted: what does not fit is named in one line."""

import re
from typing import Any, TypeVar

import msgspec

from tierscope.errors import ResultError
from tierscope.jsonable import JsonObject
from tierscope.trace.description import Description, TracedCommand
from tierscope.trace.trace import SCHEMA_VERSION
from tierscope.trace.upgrade import added_after, upgraded, upgraded_command, with_prefixes

T = TypeVar("T")

_PLACED = re.compile(r"(.*) - at `(key` in `)?\$\.?(.*)`", re.DOTALL)
_MOST_TEXT = 200


def decode_description(plain: JsonObject, fix: str) -> Description:
    """`plain`: of a file of ours, with its schema version; `fix`: what to do about one that is damaged."""
    version, content = _versioned(plain, fix)
    if version == 1:
        return decode(upgraded(content), Description, fix)
    content = with_prefixes(content, version)
    described: Description = decode(content, Description, fix)
    if wrong := _other_fields(content, msgspec.to_builtins(described, str_keys=True), added_after(version)):
        raise ResultError(f"its description is damaged: {wrong[:_MOST_TEXT]}; {fix}")
    return described


def decode_command(plain: JsonObject, fix: str) -> TracedCommand:
    version, content = _versioned(plain, fix)
    return decode(upgraded_command(content) if version == 1 else content, TracedCommand, fix)


def encode(described: Description | TracedCommand) -> JsonObject:
    return {"schema_version": SCHEMA_VERSION, **msgspec.to_builtins(described, str_keys=True)}


def _versioned(plain: JsonObject, fix: str) -> tuple[int, JsonObject]:
    """The schema version, and the rest."""
    version = plain.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ResultError(f"its description is damaged: schema_version must be int >= 1; {fix}")
    if version > SCHEMA_VERSION:
        raise ResultError(
            f"schema version {version} is newer than this Tierscope supports ({SCHEMA_VERSION}); update Tierscope"
        )
    return version, {name: value for name, value in plain.items() if name != "schema_version"}


def decode(plain: object, of: type[T] | Any, fix: str) -> T:
    """Raises a ResultError that names the first field that does not fit."""
    try:
        decoded: T = msgspec.convert(plain, of, str_keys=True)
    except msgspec.ValidationError as error:
        raise ResultError(f"its description is damaged: {wrong_field(str(error))[:_MOST_TEXT]}; {fix}") from None
    except UnicodeEncodeError:
        raise ResultError(f"its description is damaged: it contains invalid Unicode; {fix}") from None
    return decoded


def _other_fields(plain: Any, whole: Any, added: frozenset[str], path: str = "") -> str | None:
    """The first field that only one of both has; those that a later version added may be missing. Defaults are for those who build a description: a writer writes every field, and one
    that went missing ("emulated", say) would change what a result says."""
    if isinstance(whole, dict):
        inside = f"{path}." if path else ""
        if missing := next((name for name in whole if name not in plain and name not in added), None):
            return f"{inside}{missing} is missing"
        if unknown := next((name for name in plain if name not in whole), None):
            return f"{inside}{unknown} is an unknown field"
        parts = ((plain[name], value, added, f"{inside}{name}") for name, value in whole.items() if name in plain)
    elif isinstance(whole, list | tuple):
        pairs = zip(plain, whole, strict=True)
        parts = ((item, value, added, f"{path}[{index}]") for index, (item, value) in enumerate(pairs))
    else:
        return None
    return next((wrong for part in parts if (wrong := _other_fields(*part))), None)


def wrong_field(message: str) -> str:
    """What msgspec says, with the field first: `tiers[0].name must be int, is str`."""
    placed = _PLACED.fullmatch(message)
    what, of_key, where = placed.groups() if placed else (message, None, "")
    what = what.replace("`", "")
    inside = f"{where}." if where else ""
    for pattern, words in (
        (r"Object missing required field (.+)", rf"{inside}\1 is missing"),
        (r"Object contains unknown field (.+)", rf"{inside}\1 is an unknown field"),
        (r"Expected (.+), got (.+)", r"must be \1, is \2"),
        (r"Expected (.+)", r"must be \1"),
        (r"Invalid (?:enum )?value (.+)", r"= \1 is not known"),
        (r"Number out of range", "is a number out of range"),
    ):
        if re.fullmatch(pattern, what, re.DOTALL):
            said = re.sub(pattern, words, what, count=1, flags=re.DOTALL)
            subject = f"a key of {where}" if of_key else where
            return said if "Object" in pattern else f"{subject or 'it'} {said}"
    return f"{inside}{what}"
