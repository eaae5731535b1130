import pytest

from tests.spec.texts import SOURCE
from tierscope.errors import SpecError
from tierscope.spec.tree import MAX_DEPTH, MAX_NODES, Node, parse_yaml


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_yaml(text, SOURCE)
    assert str(caught.value).isprintable()
    return str(caught.value)


def plain(node: Node) -> object:
    """The tree without places."""
    if isinstance(node.value, dict):
        return {name: plain(child) for name, child in node.value.items()}
    return [plain(child) for child in node.value] if isinstance(node.value, list) else node.value


def test_scalars_stay_text_whatever_yaml_would_make_of_them() -> None:
    text = "{a: off, b: 1e3, c: 0:30, d: 0x10, e: 2024-01-01, f: '~', g: ~, h: , i: [yes, null], j: .inf, k: =}"
    assert plain(parse_yaml(text, SOURCE)) == {
        "a": "off",
        "b": "1e3",
        "c": "0:30",
        "d": "0x10",
        "e": "2024-01-01",
        "f": "~",
        "g": None,
        "h": None,
        "i": ["yes", None],
        "j": ".inf",
        "k": "=",
    }


def test_nodes_remember_the_line_of_their_key() -> None:
    root = parse_yaml("# first\na: 1\nb:\n\n  c: >\n    long\n    text\n", SOURCE)
    assert isinstance(root.value, dict)
    inner = root.value["b"].value
    assert isinstance(inner, dict)
    assert [root.value["a"].where, root.value["b"].where, inner["c"].where] == ["my.yaml:2", "my.yaml:3", "my.yaml:5"]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "\ufeff"])
def test_nothing_is_an_empty_mapping_or_null(text: str) -> None:
    assert not parse_yaml(text, SOURCE).value


def test_a_byte_order_mark_is_not_part_of_the_first_key() -> None:
    assert plain(parse_yaml("\ufeffstudy: x", SOURCE)) == {"study": "x"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "my.yaml:3: not valid YAML"),
        ("a: 1\n\tb: 2\n", "my.yaml:2: not valid YAML"),
        ("a: b: c\n", "my.yaml:1: not valid YAML"),
        ("a: 'open\n", "my.yaml:2: not valid YAML"),
        ("a: *nobody\n", "my.yaml:1: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "my.yaml:2: not valid YAML"),
        ("a: 1\nb: \x00\n", "my.yaml:2: not valid YAML"),
        ("a: 1\nb: 2\nc: \x1b[31m\n", "my.yaml:3: not valid YAML"),
        ("a: \ud800\n", "my.yaml:1: not valid YAML"),
        ("%YAML 3.0\n---\na: 1\n", "my.yaml:1: not valid YAML"),
        ("PK\x03\x04\x00\x00", "my.yaml:1: not valid YAML"),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(text: str, where: str) -> None:
    line = refusal(text)
    assert line.startswith(where)
    assert "check indentation, colons and quotes" in line


def test_a_key_given_twice_is_refused() -> None:
    assert refusal("a:\n  b: 1\n  c: 2\n  b: 3\n") == "my.yaml:4: b is given twice; remove one"


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "? {a: b}\n: 1\n"])
def test_a_key_must_be_plain_text(text: str) -> None:
    assert refusal(text) == "my.yaml:1: a key must be plain text"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", "python/object/apply:os.system"),
        ("a: 1\nb: !!python/name:os.system x\n", "python/name:os.system"),
        ("a: 1\nb: !!python/object:os.x {c: d}\n", "python/object:os.x"),
        ("a: 1\nb: !mine 3\n", "!mine"),
        ("a: 1\nb: !mine {c: 3}\n", "!mine"),
        ("a: 1\nb: !!binary aGVsbG8=\n", "binary"),
        ("a: 1\nb: !!set {c, d}\n", "set"),
        ("a: 1\n!mine b: 3\n", "!mine"),
    ],
)
def test_tags_are_refused_and_never_acted_on(text: str, tag: str) -> None:
    assert refusal(text) == f"my.yaml:2: tag {tag} is not allowed in a study; write a plain value"


def test_a_billion_laughs_stay_few() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "too large for a study; remove aliases" in refusal("\n".join(lines))


def test_an_alias_to_itself_ends() -> None:
    assert "nested too deeply" in refusal("a: &a [*a]\n")


def test_a_few_aliases_are_fine() -> None:
    assert plain(parse_yaml("a: &x {c: 1}\nb: *x\n", SOURCE)) == {"a": {"c": "1"}, "b": {"c": "1"}}


@pytest.mark.parametrize(
    "text",
    [
        "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2),
        "{a: " * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
        "- " * 2000 + "1",
        "[\n" * 2000,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    assert "nested too deeply" in refusal(text)


def nodes(number: int) -> str:
    """A list of so many nodes, itself and those behind aliases included."""
    lists, single = divmod(number - 1, 101)
    return f"[&a [{'1,' * 100}], {'*a,' * (lists - 1)} {'1,' * single}]"


def test_depth_and_number_of_nodes_have_their_limits_where_they_are_said_to_be() -> None:
    parse_yaml("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH, SOURCE)
    parse_yaml(nodes(MAX_NODES), SOURCE)
    assert "too large" in refusal(nodes(MAX_NODES + 1))


def test_a_huge_text_is_refused_unread() -> None:
    assert refusal("x" * (2**20 + 1)) == "my.yaml: larger than 1 MiB; a study is a page of YAML"


def test_without_lines_the_source_alone_is_the_place() -> None:
    assert parse_yaml("[1, 2]", "--set x=[1, 2]", with_line=False).where == "--set x=[1, 2]"


def test_set_replaces_and_adds_and_leaves_the_original() -> None:
    root = parse_yaml("a: {b: 1, c: 2}", SOURCE)
    changed = root.set(["a", "b"], Node("5", "here")).set(["d", "e"], Node("6", "there"))
    assert plain(changed) == {"a": {"b": "5", "c": "2"}, "d": {"e": "6"}}
    assert plain(root) == {"a": {"b": "1", "c": "2"}}


def test_set_does_not_hide_a_value_that_should_have_been_a_mapping() -> None:
    root = parse_yaml("a: 5\nb: [1]\nc:\n", SOURCE)
    for name in ("a", "b", "c"):
        root = root.set([name, "x"], Node("1", "here"))
    assert plain(root) == {"a": "5", "b": ["1"], "c": {"x": "1"}}
