"""A decoder-only transformer from a YAML or JSON file: keys of ours, or as Hugging Face's config.json names them. Every number is checked, and what does not fit is named.

A file with `model_type` may have keys that are not known here, which change no size; of a file without it, an unknown key is an error.
"""

import re

from tierscope.arch.decoder import Decoder
from tierscope.errors import UserError
from tierscope.spec.tree import Node, parse_yaml, read_yaml_text
from tierscope.units import closest

_NAMES = {
    "layers": ("layers", "num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden", "hidden_size", "n_embd"),
    "heads": ("heads", "num_attention_heads", "n_head"),
    "kv_heads": ("kv_heads", "num_key_value_heads", "num_kv_heads"),
    "ffn": ("ffn", "intermediate_size", "ffn_hidden_size", "n_inner"),
    "vocabulary": ("vocabulary", "vocab_size"),
    "sequence": ("sequence", "max_position_embeddings", "n_positions"),
}
_MOST = {"layers": 10**5, "heads": 10**6, "kv_heads": 10**6, "sequence": 10**8}
_MOST_OTHERS = 10**7
_TIED = ("tied", "tie_word_embeddings")
_MODEL_TYPE = "model_type"
_GPT2, _LLAMA = "gpt2", "llama"
_OTHER_SHAPES = ("num_local_experts", "num_experts", "n_routed_experts", "attention_bias", "mlp_bias")
_FIX = "a transformer's file has layers, hidden, heads, kv_heads, ffn, vocabulary and sequence"


def load_decoder(path: str) -> Decoder:
    return parse_decoder(read_yaml_text(path, _FIX), path)


def parse_decoder(text: str, source: str) -> Decoder:
    root = parse_yaml(text, source, noun="a transformer's file")
    if not isinstance(root.value, dict):
        raise UserError(f"{source}: must be a mapping; {_FIX}")
    keys = root.value
    kind = _kind(keys)
    _refuse_others(keys, source)
    hidden, heads = _whole(keys, "hidden", source), _whole(keys, "heads", source)
    sequence = _whole(keys, "sequence", source)
    learned = kind == _GPT2
    shape = Decoder(
        name=_name(keys, source),
        layers=_whole(keys, "layers", source),
        hidden=hidden,
        heads=heads,
        kv_heads=_whole(keys, "kv_heads", source, heads),
        inner=_whole(keys, "ffn", source, 4 * hidden if learned else None),
        vocabulary=_whole(keys, "vocabulary", source),
        sequence=sequence,
        positions=sequence if learned else 0,
        gated=not learned,
        biases=learned,
        tied=_tied(keys, learned),
    )
    if hidden % heads:
        raise UserError(f"{source}: hidden: {hidden} is not a multiple of heads, {heads}; use heads that divide it")
    if heads % shape.kv_heads:
        raise UserError(f"{source}: kv_heads: {shape.kv_heads} does not divide heads, {heads}; use a divisor")
    width = keys.get("head_dim")
    if width is not None and not _is_any(width, None, str(shape.head_width)):
        raise UserError(
            f"{width.where}: head_dim: {width.shown} is not hidden / heads, {shape.head_width}, and no other width is supported; use another config"
        )
    return shape


def _kind(keys: dict[str, Node]) -> str:
    node = keys.get(_MODEL_TYPE)
    if node is None:
        return _LLAMA
    if not _is_any(node, _GPT2, _LLAMA):
        raise UserError(
            f"{node.where}: {_MODEL_TYPE}: {node.shown} is not supported; use {_GPT2} (layer norm, GELU, biases) or {_LLAMA} (RMS norm, gated)"
        )
    return str(node.value)


def _is_any(node: Node, *values: str | None) -> bool:
    """A list or a mapping is none of them."""
    return any(node.value == value for value in values)


def _refuse_others(keys: dict[str, Node], source: str) -> None:
    for name in _OTHER_SHAPES:
        if name in keys and not _is_any(keys[name], None, "false", "False", "0", "1"):
            raise UserError(
                f"{keys[name].where}: {name}: only dense layers without it are supported; use another config"
            )
    known = {alias for names in _NAMES.values() for alias in names} | {
        *_TIED,
        *_OTHER_SHAPES,
        _MODEL_TYPE,
        "name",
        "head_dim",
    }
    for name in sorted(set(keys) - known):
        if _MODEL_TYPE not in keys:
            guess = closest(name, known)
            hint = f"did you mean {guess}?" if guess else f"remove it; {_FIX}"
            raise UserError(f"{keys[name].where}: {name[:40]}: unknown key; {hint}")
    for names in _NAMES.values():
        given = [name for name in names if name in keys]
        if len(given) > 1:
            raise UserError(f"{source}: {given[0]} and {given[1]} are the same thing; remove one of them")


def _whole(keys: dict[str, Node], name: str, source: str, default: int | None = None) -> int:
    """Null counts as missing, as in a config.json."""
    node = next((keys[alias] for alias in _NAMES[name] if alias in keys and keys[alias].value is not None), None)
    if node is None:
        if default is None:
            raise UserError(f"{source}: {name} is missing; {_FIX}")
        return default
    most, text = _MOST.get(name, _MOST_OTHERS), node.value
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise UserError(f"{node.where}: {name}: {node.shown!r} is not a whole number from 1 to {most:,}; correct it")
    return int(text)


def _tied(keys: dict[str, Node], default: bool) -> bool:
    node = next((keys[name] for name in _TIED if name in keys), None)
    if node is None:
        return default
    if not isinstance(node.value, str) or node.value.lower() not in {"true", "false"}:
        raise UserError(f"{node.where}: tied: {node.shown!r} is neither true nor false; correct it")
    return node.value.lower() == "true"


def _name(keys: dict[str, Node], source: str) -> str:
    node = keys.get("name")
    if node is None:
        return source
    if not isinstance(node.value, str) or not node.value.isprintable() or len(node.value) > 100:
        raise UserError(f"{node.where}: name: must be a line of text; correct it")
    return node.value
