"""Chrome's trace format, event by event: `{"traceEvents": [...], …}` or a bare list, plain or compressed, in little memory whatever its size.

torch's and TensorFlow's profilers write it. Nothing of it is trusted: what is not JSON, not a list of objects, cut, nested too deeply or a value of absurd length is one
error that names the file.
"""

import codecs
import json
from collections.abc import Container, Iterator
from typing import Any, NoReturn

from tierscope.errors import UserError, shell_word
from tierscope.imports.dftracer_files import FileDamage, pieces
from tierscope.jsonable import JsonObject

MOST_EVENT_CHARS = 1 << 20
MOST_VALUE_CHARS = 1 << 24  # of the keys beside the events
MOST_BYTES = 8 << 30
_SPACE = " \t\r\n"
_FIX = "name a trace that torch's or TensorFlow's profiler exported (*.json, *.json.gz)"
_NO_EVENTS = f"has no traceEvents; {_FIX}"
_TENSORFLOW_SUFFIX = ".xplane.pb"
_CONVERT = (
    "is TensorFlow's own format, not Chrome JSON; convert it first: pip install xprof, then python -c "
    '"import sys; from xprof.convert.raw_to_tool_data import xspace_to_tool_data as convert; '
    "open('trace.json', 'w').write(convert(sys.argv[1:], 'trace_viewer', {{}})[0])\" {path}"
)


class ChromeTrace:
    """`header`: those of the `wanted` keys that there are beside the events, complete when all events were read. Others are read and forgotten: there may be any number of them."""

    def __init__(self, path: str, wanted: Container[str] = ()) -> None:
        self.path = path
        self.header: JsonObject = {}
        self._wanted = wanted

    def events(self) -> Iterator[JsonObject]:
        text = _Text(self.path)
        if self.path.endswith(_TENSORFLOW_SUFFIX):
            text.refuse(_CONVERT.format(path=shell_word(self.path)))
        opening = text.next_char()
        if opening == "[":
            yield from text.events()
        elif opening == "{":
            yield from self._of_object(text)
        else:
            text.refuse(_NO_EVENTS)
        if text.next_char():
            text.refuse("goes on behind its end; copy it again from where it was written")

    def _of_object(self, text: "_Text") -> Iterator[JsonObject]:
        text.take("{")
        known = False
        while text.next_char() != "}":
            name = text.value(MOST_EVENT_CHARS)
            if not isinstance(name, str):
                text.refuse(f"is not JSON; {_FIX}")
            text.take(":")
            if (name == "traceEvents" and known) or name in self.header:
                text.refuse(f"{name[:40]} is given twice; {_FIX}")
            if name == "traceEvents" and text.next_char() == "[":
                known = True
                yield from text.events()
            else:
                value = text.value(MOST_VALUE_CHARS)
                if name in self._wanted:
                    self.header[name] = value
            text.comma("}")
        text.take("}")
        if not known:
            text.refuse(_NO_EVENTS)


class _Text:
    """The file as text, of which only what is not read yet is kept."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._damage = FileDamage()
        self._pieces = pieces(path, self._damage)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._json = json.JSONDecoder(parse_constant=self._no_number)
        self._text, self._place, self._bytes = "", 0, 0

    def refuse(self, why: str) -> NoReturn:
        raise UserError(f"{self._path}: {why}")

    def next_char(self) -> str:
        """The next one that is not blank; nothing at the end."""
        while True:
            while self._place < len(self._text):
                if self._text[self._place] not in _SPACE:
                    return self._text[self._place]
                self._place += 1
            if not self._more():
                return ""

    def take(self, char: str) -> None:
        if self.next_char() != char:
            self.refuse(self._broken())
        self._place += 1

    def comma(self, closing: str) -> None:
        """Between two values, or none before the end."""
        if self.next_char() != closing:
            self.take(",")
            if self.next_char() == closing:
                self.refuse(self._broken())

    def events(self) -> Iterator[JsonObject]:
        self.take("[")
        while self.next_char() != "]":
            event = self.value(MOST_EVENT_CHARS)
            if not isinstance(event, dict):
                self.refuse(f"has an event that is not an object; {_FIX}")
            yield event
            self.comma("]")
        self.take("]")

    def value(self, most: int) -> Any:
        self.next_char()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._place)
            except json.JSONDecodeError:
                whole = False
            except RecursionError:
                self.refuse(f"is nested too deeply; {_FIX}")
            except ValueError as error:  # a number that is none, or of thousands of digits
                self.refuse(f"has a number that cannot be: {str(error)[:80]}; {_FIX}")
            else:
                whole = end < len(self._text)  # a number may go on in the next piece
            if whole:
                self._place = end
                return value
            if len(self._text) - self._place > most:
                self.refuse(f"has a value of more than {most >> 20} MiB, or is not JSON; {_FIX}")
            if not self._more():
                self.refuse(self._broken())

    def _more(self) -> bool:
        piece = next(self._pieces, b"")
        self._bytes += len(piece)
        if self._bytes > MOST_BYTES:
            self.refuse(f"is larger than {MOST_BYTES >> 30} GiB; export a shorter stretch of the run")
        self._text = self._text[self._place :] + self._decoder.decode(piece)
        self._place = 0
        return bool(piece)

    def _broken(self) -> str:
        cut = self._damage.cut or not self._text[self._place :].strip()
        return (
            f"{'is cut short' if cut else 'is not JSON'}; export it again, or copy it again from where it was written"
        )

    @staticmethod
    def _no_number(name: str) -> NoReturn:
        raise ValueError(name)
