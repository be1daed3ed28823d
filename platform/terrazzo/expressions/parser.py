"""Pieces to a tree: recursive descent with Python's precedences, bounded in depth."""

from __future__ import annotations

import math

from terrazzo.expressions.functions import ARGUMENTS
from terrazzo.expressions.tokens import ExpressionError, Token, TokenKind, split
from terrazzo.expressions.tree import (
    Arithmetic,
    Call,
    Choice,
    Comparison,
    Constant,
    Logic,
    Name,
    Node,
    Not,
    Sign,
)
from terrazzo.reasons import say

MAX_DEPTH = 25
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False}


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        ExpressionError: the character where it goes wrong, and what was expected.
    """
    return Parser(split(text)).parse()


class Parser:
    """Reads tokens one by one; a method for each level of precedence."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def parse(self) -> Node:
        """The whole expression."""
        node = self._choice()
        if self._token.kind is not TokenKind.END:
            raise self._unexpected("an operator")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self, kind: TokenKind, *texts: str) -> str | None:
        """The text of the next token, if it is one of these; None leaves it."""
        token = self._token
        if token.kind is kind and (not texts or token.text in texts):
            self._next += 1
            return token.text
        return None

    def _require(self, kind: TokenKind, text: str) -> None:
        if self._take(kind, text) is None:
            raise self._unexpected(f"{text!r}")

    def _unexpected(self, expected: str) -> ExpressionError:
        token = self._token
        found = "the end" if token.kind is TokenKind.END else repr(token.text)[:40]
        return ExpressionError(say("unexpected_token", place=token.place, expected=expected, found=found))

    def _choice(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(say("expression_too_deep", place=self._token.place, most=MAX_DEPTH))
        node = self._or()
        if self._take(TokenKind.WORD, "if"):
            condition = self._or()
            self._require(TokenKind.WORD, "else")
            node = Choice(condition, node, self._choice())
        self._depth -= 1
        return node

    def _or(self) -> Node:
        operands = [self._and()]
        while self._take(TokenKind.WORD, "or"):
            operands.append(self._and())
        return Logic("or", tuple(operands)) if operands[1:] else operands[0]

    def _and(self) -> Node:
        operands = [self._not()]
        while self._take(TokenKind.WORD, "and"):
            operands.append(self._not())
        return Logic("and", tuple(operands)) if operands[1:] else operands[0]

    def _not(self) -> Node:
        count = 0
        while self._take(TokenKind.WORD, "not"):
            count += 1
        node = self._comparison()
        for _ in range(count and 2 - count % 2):  # an even number of them is two
            node = Not(node)
        return node

    def _comparison(self) -> Node:
        first = self._sum()
        rest = []
        while operator := self._take(TokenKind.OPERATOR, *_COMPARISONS):
            rest.append((operator, self._sum()))
        return Comparison(first, tuple(rest)) if rest else first

    def _sum(self) -> Node:
        node = self._product()
        while operator := self._take(TokenKind.OPERATOR, "+", "-"):
            node = self._arithmetic(operator, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._factor()
        while operator := self._take(TokenKind.OPERATOR, "*", "/", "//", "%"):
            node = self._arithmetic(operator, node, self._factor())
        return node

    def _factor(self) -> Node:
        signs = []
        while sign := self._take(TokenKind.OPERATOR, "-", "+"):
            signs.append(sign)
        node = self._power()
        if signs:
            node = Sign("-" if signs.count("-") % 2 else "+", self._number(node))
        return node

    def _power(self) -> Node:
        base = self._atom()
        if self._take(TokenKind.OPERATOR, "**") is None:
            return base
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(say("expression_too_deep", place=self._token.place, most=MAX_DEPTH))
        node = self._arithmetic("**", base, self._factor())
        self._depth -= 1
        return node

    def _arithmetic(self, operator: str, left: Node, right: Node) -> Node:
        return Arithmetic(operator, self._number(left), self._number(right))

    def _number(self, node: Node) -> Node:
        if isinstance(node, Constant) and isinstance(node.value, str):
            raise ExpressionError(say("text_not_reckoned", place=self._token.place))
        return node

    def _atom(self) -> Node:
        token = self._token
        if self._take(TokenKind.NUMBER):
            return Constant(_parse_number(token))
        if self._take(TokenKind.TEXT) is not None:
            return Constant(token.text)
        if self._take(TokenKind.NAME):
            if self._token.text == "(" and self._token.kind is TokenKind.OPERATOR:
                return self._call(token)
            return Constant(_CONSTANTS[token.text]) if token.text in _CONSTANTS else Name(token.text)
        if self._take(TokenKind.OPERATOR, "("):
            node = self._choice()
            self._require(TokenKind.OPERATOR, ")")
            return node
        raise self._unexpected("a value")

    def _call(self, name: Token) -> Node:
        if name.text not in ARGUMENTS:
            raise ExpressionError(
                say("no_function", place=name.place, name=name.text[:40], names=", ".join(sorted(ARGUMENTS)))
            )
        self._require(TokenKind.OPERATOR, "(")
        arguments = [self._choice()]
        while self._take(TokenKind.OPERATOR, ","):
            arguments.append(self._choice())
        self._require(TokenKind.OPERATOR, ")")
        fewest, most = ARGUMENTS[name.text]
        if not fewest <= len(arguments) <= most:
            expected = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise ExpressionError(
                say("function_arguments", place=name.place, name=name.text, expected=expected, got=len(arguments))
            )
        return Call(name.text, tuple(arguments))


def _parse_number(token: Token) -> int | float:
    text = token.text
    if text[:2] in ("0x", "0X"):
        value: int | float = int(text, 16)
    elif text.isdigit():
        value = int(text)
    else:
        value = float(text)
    if (abs(value) >= 2**63) if isinstance(value, int) else not math.isfinite(value):
        raise ExpressionError(say("number_too_large", place=token.place, number=text[:40]))
    return value
