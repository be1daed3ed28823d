"""The text of an expression in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from terrazzo.reasons import say

MAX_CHARACTERS = 2_000
MAX_TOKENS = 400

_OPERATORS = ("**", "//", "==", "!=", "<=", ">=", *"+-*/%<>(),")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_QUOTED = re.compile(r"\{([^{}]+)\}")
_TEXT = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_BLANK = re.compile(r"\s*")
WORDS = frozenset({"and", "or", "not", "if", "else"})


class ExpressionError(ValueError):
    """What is wrong with an expression, and where."""


class TokenKind(Enum):
    """The kinds of pieces: numbers, texts, names, operators, the end."""

    NUMBER = "number"
    TEXT = "text"
    NAME = "name"
    WORD = "word"  # and, or, not, if, else
    OPERATOR = "operator"
    END = "end"


class Token(NamedTuple):
    """One piece of the text; ``place`` is where it begins, in characters from 1."""

    kind: TokenKind
    text: str
    place: int


def split(text: str) -> list[Token]:
    """The pieces of an expression, the end included.

    Raises:
        ExpressionError: a character that has no meaning, or too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(say("longer_than", most=MAX_CHARACTERS))
    tokens: list[Token] = []
    for token in _tokens(text):
        tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            raise ExpressionError(say("expression_too_long", most=MAX_TOKENS))
    return tokens


def _tokens(text: str) -> Iterator[Token]:
    place = _end_of(_BLANK, text, 0)
    while place < len(text):
        token, end = _next(text, place)
        yield token
        place = _end_of(_BLANK, text, end)
    yield Token(TokenKind.END, "", len(text) + 1)


def _next(text: str, start: int) -> tuple[Token, int]:
    at = start + 1
    if found := _NUMBER.match(text, start):
        return Token(TokenKind.NUMBER, found[0], at), found.end()
    if found := _NAME.match(text, start):
        kind = TokenKind.WORD if found[0] in WORDS else TokenKind.NAME
        return Token(kind, found[0], at), found.end()
    if found := _QUOTED.match(text, start):
        return Token(TokenKind.NAME, found[1].strip(), at), found.end()
    if found := _TEXT.match(text, start):
        return Token(TokenKind.TEXT, found[1] or found[2] or "", at), found.end()
    for operator in _OPERATORS:
        if text.startswith(operator, start):
            return Token(TokenKind.OPERATOR, operator, at), start + len(operator)
    raise ExpressionError(say("sign_without_meaning", place=at, sign=text[start], hint=_hint(text[start])))


def _hint(character: str) -> str:
    hints = {"=": "; equality is ==", "'": "; the text has no end", '"': "; the text has no end"}
    return hints.get(character, "")


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start
