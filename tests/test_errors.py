import pickle

import pytest

from tierscope import errors


def all_errors(root: type[errors.TierscopeError]) -> list[type[errors.TierscopeError]]:
    return [root] + [found for child in root.__subclasses__() for found in all_errors(child)]


def expected_exit_code(error: type[errors.TierscopeError]) -> int:
    if issubclass(error, errors.CommandError):
        return 126  # as of a shell
    if issubclass(error, errors.UserError):
        return 2
    return 3 if issubclass(error, errors.StoppedError) else 1


@pytest.mark.parametrize("error", all_errors(errors.TierscopeError))
def test_exit_code_says_whose_fault_it_is(error: type[errors.TierscopeError]) -> None:
    assert error.exit_code == expected_exit_code(error)


@pytest.mark.parametrize("error", all_errors(errors.TierscopeError))
def test_prefixed_keeps_the_type_and_the_message(error: type[errors.TierscopeError]) -> None:
    met = error("file.raw is gone").prefixed("rank 3")
    assert type(met) is error
    assert str(met) == "rank 3: file.raw is gone"


@pytest.mark.parametrize("error", all_errors(errors.UserError))
def test_a_users_mistake_is_one_line_whatever_they_typed(error: type[errors.UserError]) -> None:
    met = error("key 'a\nb\r\x1b[31m\u2028' = µ 東京")
    assert str(met) == "key 'a\\nb\\r\\x1b[31m\\u2028' = µ 東京"


def test_an_error_survives_the_way_from_a_rank() -> None:
    met = errors.SpecError("a\nb")
    back = pickle.loads(pickle.dumps(met))
    assert type(back) is errors.SpecError
    assert str(back) == str(met)


def test_a_command_that_is_not_there_has_the_code_of_a_shell() -> None:
    assert errors.CommandError("x", missing=True).exit_code == 127


def test_the_tree_is_drawn_in_the_docstring() -> None:
    assert errors.__doc__
    for error in all_errors(errors.TierscopeError):
        assert error.__name__ in errors.__doc__
