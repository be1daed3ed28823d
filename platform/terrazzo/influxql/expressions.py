"""Tokens to expressions: arithmetic, calls and conditions, by precedence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from terrazzo.influxql.errors import SyntaxFault
from terrazzo.influxql.moments import parse_length
from terrazzo.influxql.patterns import Pattern
from terrazzo.influxql.syntax import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    Constant,
    Expr,
    Length,
    Logic,
    PatternOperand,
    Ref,
    Wildcard,
)
from terrazzo.influxql.tokens import Tokens

DEEPEST = 40
"""Parentheses, calls and subqueries within one another."""

_MOST_IN_A_ROW = 60  # operators of one level, which are as deep as they are many
_MOST_ARGUMENTS = 20
_CASTS = {"FIELD": "field", "TAG": "tag", "FLOAT": "field", "INTEGER": "field", "STRING": "field", "BOOLEAN": "field"}
_ARITHMETIC: Sequence[Sequence[str]] = (("|", "^"), ("&",), ("+", "-"), ("*", "/", "%"))
_EXPECTED = "identifier", "string", "number", "bool"


class ExpressionReader:
    """Reads expressions off tokens; each method raises ``SyntaxFault`` where there is none."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self._depth = 0

    def condition(self) -> Expr:
        """A condition of WHERE."""
        return self._logic("OR", lambda: self._logic("AND", self._comparison))

    def value(self) -> Expr:
        """Arithmetic over fields and calls."""
        return self._binary(0)

    def enter(self) -> None:
        """One level deeper; raises ``SyntaxFault`` where that is too deep."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise SyntaxFault(f"nested more than {DEEPEST} levels deep")

    def leave(self) -> None:
        """One level up."""
        self._depth -= 1

    def _logic(self, word: str, read: Callable[[], Expr]) -> Expr:
        parts = [read()]
        while self.tokens.take_word(word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else Logic(word == "AND", tuple(parts))

    def _comparison(self) -> Expr:
        left = self.value()
        if not self.tokens.current.is_sign(*COMPARISONS):
            return left
        sign = self.tokens.take().text
        if sign in ("=~", "!~"):
            pattern = self.tokens.take_pattern()
            if pattern is None:
                raise self.tokens.unexpected("regex")
            return Binary(sign, left, PatternOperand(Pattern(pattern)))
        return Binary("!=" if sign == "<>" else sign, left, self.value())

    def _binary(self, level: int) -> Expr:
        if level == len(_ARITHMETIC):
            return self._operand()
        left, count = self._binary(level + 1), 0
        while self.tokens.current.is_sign(*_ARITHMETIC[level]):
            count += 1
            if count > _MOST_IN_A_ROW:
                raise SyntaxFault(f"more than {_MOST_IN_A_ROW} operators in a row")
            left = Binary(self.tokens.take().text, left, self._binary(level + 1))
        return left

    def _operand(self) -> Expr:
        token = self.tokens.current
        match token.kind:
            case "name":
                self.tokens.take()
                return Ref(self._dotted(token.text), self._cast())
            case "text":
                return Constant(self.tokens.take().text)
            case "integer":
                return Constant(_integer(self.tokens.take().text))
            case "number":
                return Constant(float(self.tokens.take().text))
            case "length":
                return Length(parse_length(self.tokens.take().text))
            case "word":
                return self._word()
            case "sign":
                return self._sign()
        raise self.tokens.unexpected(*_EXPECTED)

    def _sign(self) -> Expr:
        tokens = self.tokens
        if tokens.take_sign("("):
            self.enter()
            found = self.condition()
            self.leave()
            tokens.expect_sign(")")
            return found
        if tokens.current.is_sign("-", "+"):
            return self._signed(tokens.take().text)
        if tokens.take_sign("*"):
            return Wildcard(self._cast())
        pattern = tokens.take_pattern()
        if pattern is not None:
            return Wildcard("", Pattern(pattern))
        raise tokens.unexpected(*_EXPECTED)

    def _signed(self, sign: str) -> Expr:
        self.enter()
        found = self._operand()
        self.leave()
        if sign == "+":
            return found
        if isinstance(found, Constant) and isinstance(found.value, int | float) and not isinstance(found.value, bool):
            return Constant(-found.value)
        if isinstance(found, Length):
            return Length(-found.ns)
        return Binary("*", Constant(-1), found)

    def _word(self) -> Expr:
        token = self.tokens.take()
        if token.is_word("TRUE", "FALSE"):
            return Constant(token.is_word("TRUE"))
        if self.tokens.take_sign("("):
            return self._call(token.text.lower())
        if token.is_word(*RESERVED):
            raise SyntaxFault(f"found {token.text.upper()}, expected {', '.join(_EXPECTED)}")
        return Ref(self._dotted(token.text), self._cast())

    def _call(self, name: str) -> Expr:
        args: list[Expr] = []
        self.enter()
        if not self.tokens.current.is_sign(")"):
            args.append(self.value())
            while self.tokens.take_sign(","):
                args.append(self.value())
                if len(args) > _MOST_ARGUMENTS:
                    raise SyntaxFault(f"{name[:100]}() has more than {_MOST_ARGUMENTS} arguments")
        self.leave()
        self.tokens.expect_sign(")")
        return Call(name, tuple(args))

    def _dotted(self, name: str) -> str:
        """A bare name of several parts, as points of nested objects have them."""
        parts = [name]
        while self.tokens.take_sign("."):
            parts.append(self.identifier())
        return ".".join(parts)

    def identifier(self) -> str:
        """A name, in quotes or bare."""
        token = self.tokens.current
        if token.kind == "name" or (token.kind == "word" and not token.is_word(*RESERVED)):
            return self.tokens.take().text
        raise self.tokens.unexpected("identifier")

    def _cast(self) -> Cast:
        if not self.tokens.take_sign("::"):
            return ""
        return _CASTS[self.tokens.expect_word(*_CASTS).text.upper()]  # type: ignore[return-value] # the values are casts


def _integer(text: str) -> int | float:
    if len(text) > 4_000:
        raise SyntaxFault("unable to parse number")
    found = int(text)
    return found if found < 2**63 else float(found)


# fmt: off
RESERVED = frozenset((
    "ALL", "ALTER", "AND", "ANY", "AS", "ASC", "BEGIN", "BY", "CARDINALITY", "CREATE", "CONTINUOUS", "DATABASE",
    "DATABASES", "DEFAULT", "DELETE", "DESC", "DESTINATIONS", "DIAGNOSTICS", "DISTINCT", "DROP", "DURATION", "END",
    "EVERY", "EXACT", "EXPLAIN", "FIELD", "FOR", "FROM", "GRANT", "GRANTS", "GROUP", "GROUPS", "IN", "INF", "INSERT",
    "INTO", "KEY", "KEYS", "KILL", "LIMIT", "MEASUREMENT", "MEASUREMENTS", "NAME", "OFFSET", "ON", "OR", "ORDER",
    "PASSWORD", "POLICIES", "POLICY", "PRIVILEGES", "QUERIES", "QUERY", "READ", "REPLICATION", "RESAMPLE",
    "RETENTION", "REVOKE", "SELECT", "SERIES", "SET", "SHARD", "SHARDS", "SHOW", "SLIMIT", "SOFFSET", "STATS",
    "SUBSCRIPTION", "SUBSCRIPTIONS", "TAG", "TO", "USER", "USERS", "VALUES", "WHERE", "WITH", "WRITE",
))
# fmt: on
"""Words that are names only in double quotes."""
