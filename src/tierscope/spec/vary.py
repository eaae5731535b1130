"""`--vary KEY=VALUES`: keys of a study and the values to try, as they are typed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tierscope.errors import SpecError, UserError
from tierscope.spec import keys, schema, sweep
from tierscope.spec.study import Axis, Study
from tierscope.spec.tree import Node, parse_yaml

EXAMPLE = "reader.transfer_size=256KiB,1MiB or read_threads=1:8:1"


def read_vary(study: Study, vary: Sequence[str], refused: Mapping[str, str] | None = None) -> tuple[Axis, ...]:
    """`KEY=A,B,C` or `KEY=A:B:STEP`, with any unambiguous suffix of a key. `refused`: prefix of a path → why it is not varied."""
    leaves = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])
    axes: dict[str, Axis] = {}
    for text in vary:
        where = f"--vary {text}"
        key, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not key or not values:
            raise UserError(f"{where}: must be KEY=VALUES, for example {EXAMPLE}")
        path = keys.resolve(key, list(leaves), where)
        for prefix, why in (refused or {}).items():
            if path.startswith(prefix):
                raise UserError(f"{where}: {path} {why}")
        if path in axes:
            raise UserError(f"{where}: {path} is given twice; remove one")
        listed = f"[{values}]" if "," in values and not values.startswith("[") else values
        try:
            node = parse_yaml(listed, where, with_line=False)
            (axes[path],) = sweep.read_axes(Node({path: node}, where), leaves)
        except SpecError as error:
            raise SpecError(str(error).replace(f"sweep.{path}", path)) from None
    return tuple(axes.values())


def value_at(study: Study, path: str) -> Any:
    """What the study says for a key, by its full path."""
    value: Any = study
    for name in path.split("."):
        if isinstance(value, tuple):
            value = next(item for item in value if item.name == name)
        else:
            value = getattr(value, next(field.name for field in schema.fields(type(value)) if field.yaml == name))
    return value
