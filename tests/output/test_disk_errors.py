"""One translation of what the system says: which of our errors it is, and in which words."""

import errno
import os
from dataclasses import fields

import pytest

from tierscope.errors import AWAY, OutOfSpaceError, StoppedError, UserError
from tierscope.output import disk_errors
from tierscope.output.disk_errors import FULL, GENERATING, RESULT, Wording, explained, explanation, plain

WORDINGS = [value for value in vars(disk_errors).values() if isinstance(value, Wording)]


def error_of(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize("wording", [*WORDINGS, plain("make it writable")])
def test_the_kind_of_error_depends_on_its_number_only(wording: Wording) -> None:
    for number in FULL:
        assert type(explanation(error_of(number), "/f", wording)) is OutOfSpaceError
    for number in AWAY:
        assert type(explanation(error_of(number), "/f", wording)) is StoppedError
    refused = error_of(errno.EACCES)
    found = explanation(refused, "/f", wording)
    assert found is refused if wording.other is None else type(found) is UserError


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_sentence_has_the_path_the_reason_and_a_fix(wording: Wording) -> None:
    for field in fields(wording):
        sentence = getattr(wording, field.name)
        assert sentence is None or ("{said}" in sentence and "; " in sentence)
    assert str(explanation(error_of(errno.ENOSPC), "/a{b}", wording)).startswith("/a{b}: ")
    assert "No space left on device" in str(explanation(error_of(errno.ENOSPC), "/f", wording))


def test_a_librarys_words_are_cut_to_one_line() -> None:
    found = explanation(OSError("Unable to write\nlots of detail"), "/f", GENERATING)
    assert str(found) == "/f: cannot be written: Unable to write; check the directory"


def test_a_block_is_explained_by_its_own_file_where_it_is_known() -> None:
    with pytest.raises(OutOfSpaceError, match=r"^/inner: "), explained("/outer", RESULT, by_name=True):
        raise error_of(errno.EDQUOT, "/inner")
    with pytest.raises(StoppedError, match=r"^/outer: "), explained("/outer", RESULT, by_name=True):
        raise error_of(errno.EIO)
    with pytest.raises(StoppedError, match=r"^/outer: "), explained("/outer", GENERATING):
        raise error_of(errno.EIO, "/inner")
    with pytest.raises(PermissionError), explained("/outer", RESULT):
        raise error_of(errno.EACCES)
