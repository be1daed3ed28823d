"""Text to tokens, in one pass: each is matched where the one before it ended."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from terrazzo.influxql.errors import SyntaxFault

MOST_CHARACTERS = 65_536
"""Of one request's text."""

Kind = Literal["word", "name", "text", "number", "integer", "length", "sign", "pattern", "end"]
"""``word``: bare, a keyword or a name; ``name``: in double quotes; ``length``: of time."""

_TOKEN = re.compile(
    r"""(?P<space>[\s]+|--[^\n]*)
    |(?P<length>[0-9]+(?:ns|us|ms|[usmhdwµ])(?:[0-9]+(?:ns|us|ms|[usmhdwµ]))*(?![A-Za-z0-9_.]))
    |(?P<number>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+\.|[0-9]+[eE][+-]?[0-9]+)
    |(?P<integer>[0-9]+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<name>"(?:[^"\\\n]|\\.)*")
    |(?P<text>'(?:[^'\\\n]|\\.)*')
    |(?P<sign>=~|!~|!=|<>|<=|>=|::|[-+*/%()&|^,;.=<>:])""",
    re.VERBOSE,
)
_PATTERN = re.compile(r"/((?:[^/\\\n]|\\.)+)/")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n"}


class Token(NamedTuple):
    """``text``: of a word as it stands, of a name or text without its quotes, of a pattern without its slashes."""

    kind: Kind
    text: str
    start: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in whatever case."""
        return self.kind == "word" and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        """Whether it is one of these signs."""
        return self.kind == "sign" and self.text in signs


class Tokens:
    """The tokens of a text, read one after the other; ``current`` is the next that is not taken yet.

    Raises:
        SyntaxFault: the text is too long, or what follows is no token.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise SyntaxFault(f"the query has more than {MOST_CHARACTERS} characters")
        self._text = text
        self._end = 0
        self.current = self._read_next()

    @property
    def is_at_end(self) -> bool:
        """Whether all is taken."""
        return self.current.kind == "end"

    def take(self) -> Token:
        """The current token; the next becomes current."""
        taken = self.current
        self.current = self._read_next()
        return taken

    def take_word(self, *words: str) -> bool:
        """Takes the current token if it is one of these keywords."""
        if not self.current.is_word(*words):
            return False
        self.take()
        return True

    def take_sign(self, *signs: str) -> bool:
        """Takes the current token if it is one of these signs."""
        if not self.current.is_sign(*signs):
            return False
        self.take()
        return True

    def expect_word(self, *words: str) -> Token:
        """Takes one of these keywords; raises ``SyntaxFault`` where there is none."""
        if not self.current.is_word(*words):
            raise self.unexpected(*words)
        return self.take()

    def expect_sign(self, sign: str) -> None:
        """Takes this sign; raises ``SyntaxFault`` where there is none."""
        if not self.take_sign(sign):
            raise self.unexpected(sign)

    def take_pattern(self) -> str | None:
        """The regular expression that begins with the current token, a slash; None where it is another."""
        if not self.current.is_sign("/"):
            return None
        found = _PATTERN.match(self._text, self.current.start)
        if found is None:
            raise SyntaxFault(f"unterminated regular expression at {self._place(self.current.start)}")
        self._end = found.end()
        self.current = self._read_next()
        return found[1].replace("\\/", "/")

    def unexpected(self, *expected: str) -> SyntaxFault:
        """The error for the current token."""
        found = self.current
        shown = "EOF" if found.kind == "end" else found.text.upper() if found.kind == "word" else found.text
        return SyntaxFault(f"found {shown[:100]}, expected {', '.join(expected)} at {self._place(found.start)}")

    def _place(self, start: int) -> str:
        before = self._text[:start]
        line_start = before.rfind("\n") + 1
        return f"line {before.count(chr(10)) + 1}, char {start - line_start + 1}"

    def _read_next(self) -> Token:
        text, start = self._text, self._end
        while start < len(text):
            found = _TOKEN.match(text, start)
            if found is None:
                raise SyntaxFault(f"found {text[start : start + 20]!a}, which is no token, at {self._place(start)}")
            kind = found.lastgroup
            if kind != "space":
                self._end = found.end()
                return Token(kind, _content(kind, found[0]), start)  # type: ignore[arg-type] # the groups' names are kinds
            start = found.end()
        self._end = start
        return Token("end", "", start)


def _content(kind: str | None, text: str) -> str:
    if kind in ("name", "text"):
        inner = text[1:-1]
        return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), inner) if "\\" in inner else inner
    return text
