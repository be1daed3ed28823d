"""Tokens to statements."""

from __future__ import annotations

from terrazzo.influxql.errors import SyntaxFault
from terrazzo.influxql.expressions import ExpressionReader
from terrazzo.influxql.patterns import Pattern
from terrazzo.influxql.syntax import (
    Call,
    Column,
    Constant,
    Cut,
    Expr,
    Fill,
    KeyFilter,
    Length,
    Measurement,
    Ref,
    Select,
    Show,
    ShowKind,
    Statement,
    Unserved,
    Wildcard,
)
from terrazzo.influxql.tokens import Tokens

MOST_STATEMENTS = 100
_MOST_COLUMNS = 1_000
_MOST_SOURCES = 100
_READ_ONLY = "ALTER", "BEGIN", "CREATE", "DELETE", "DROP", "GRANT", "INSERT", "KILL", "REVOKE", "SET"
_FILLS = "null", "none", "previous", "linear"
_STATEMENTS = "SELECT", "SHOW"


def parse_query(text: str) -> list[Statement]:
    """The statements of a text, which ``;`` separates.

    Raises:
        SyntaxFault: it is no InfluxQL; nothing of it is to be answered.
    """
    reader, found = _StatementReader(Tokens(text)), []
    tokens = reader.tokens
    while not tokens.is_at_end:
        if tokens.take_sign(";"):
            continue
        found.append(reader.statement())
        if len(found) > MOST_STATEMENTS:
            raise SyntaxFault(f"more than {MOST_STATEMENTS} statements")
        if not tokens.is_at_end and not tokens.current.is_sign(";"):
            raise tokens.unexpected(";")
    if not found:
        raise tokens.unexpected(*_STATEMENTS)
    return found


class _StatementReader(ExpressionReader):
    """Reads statements off tokens; each method raises ``SyntaxFault`` where there is none."""

    def statement(self) -> Statement:
        """One statement, up to its semicolon."""
        tokens = self.tokens
        if tokens.take_word("SELECT"):
            return self._select()
        if tokens.take_word("SHOW"):
            return self._show()
        if tokens.current.is_word(*_READ_ONLY, "EXPLAIN"):
            word = tokens.current.text.upper()
            self._skip()
            return Unserved(f"{word} is not served here: this address only reads (SELECT and SHOW)")
        raise tokens.unexpected(*_STATEMENTS)

    def _skip(self) -> None:
        while not self.tokens.is_at_end and not self.tokens.current.is_sign(";"):
            self.tokens.take()

    def _select(self) -> Select | Unserved:
        tokens = self.tokens
        columns = [self._column()]
        while tokens.take_sign(","):
            columns.append(self._column())
            if len(columns) > _MOST_COLUMNS:
                raise SyntaxFault(f"more than {_MOST_COLUMNS} columns")
        if tokens.current.is_word("INTO"):
            self._skip()
            return Unserved("SELECT ... INTO is not served here: this address only reads")
        tokens.expect_word("FROM")
        sources = self._sources()
        where = self.condition() if tokens.take_word("WHERE") else None
        interval_ns, offset_ns, tags = self._dimensions()
        fill = self._fill()
        is_descending = self._order()
        cut = self._cut()
        zone = self._zone()
        return Select(
            columns=tuple(columns),
            sources=sources,
            where=where,
            interval_ns=interval_ns,
            offset_ns=offset_ns,
            tags=tags,
            fill=fill,
            is_descending=is_descending,
            cut=cut,
            zone=zone,
        )

    def _column(self) -> Column:
        expr = self.value()
        alias = self.identifier() if self.tokens.take_word("AS") else ""
        return Column(expr, alias)

    def _sources(self) -> tuple[Measurement | Select, ...]:
        found = [self._source()]
        while self.tokens.take_sign(","):
            found.append(self._source())
            if len(found) > _MOST_SOURCES:
                raise SyntaxFault(f"more than {_MOST_SOURCES} sources")
        return tuple(found)

    def _source(self) -> Measurement | Select:
        tokens = self.tokens
        if not tokens.take_sign("("):
            return self._measurement()
        self.enter()
        tokens.expect_word("SELECT")
        select = self._select()
        self.leave()
        tokens.expect_sign(")")
        if isinstance(select, Unserved):
            raise SyntaxFault(select.reason)
        return select

    def _measurement(self) -> Measurement:
        """``name``, ``policy.name``, ``database.policy.name`` or ``database..name``, or a pattern at the end."""
        parts: list[str] = []
        while True:
            pattern = self.tokens.take_pattern()
            if pattern is not None:
                return Measurement(Pattern(pattern), parts[0] if len(parts) == 2 else "")
            parts.append("" if self.tokens.current.is_sign(".") and parts else self.identifier())
            if len(parts) == 3 or not self.tokens.take_sign("."):
                return Measurement(parts[-1], parts[0] if len(parts) == 3 else "")

    def _dimensions(self) -> tuple[int, int, tuple[str | Wildcard, ...]]:
        interval_ns, offset_ns = 0, 0
        tags: list[str | Wildcard] = []
        if not self.tokens.take_word("GROUP"):
            return 0, 0, ()
        self.tokens.expect_word("BY")
        while True:
            pattern = self.tokens.take_pattern()
            if pattern is not None:
                tags.append(Wildcard("tag", Pattern(pattern)))
            elif self.tokens.take_sign("*"):
                tags.append(Wildcard("tag"))
            else:
                expr = self.value()
                if isinstance(expr, Call):
                    if interval_ns:
                        raise SyntaxFault("multiple time dimensions not allowed")
                    interval_ns, offset_ns = _interval(expr)
                else:
                    tags.append(_tag(expr))
            if not self.tokens.take_sign(","):
                return interval_ns, offset_ns, tuple(tags)

    def _fill(self) -> Fill:
        tokens = self.tokens
        if not tokens.take_word("FILL"):
            return Fill()
        tokens.expect_sign("(")
        if tokens.current.kind == "word" and tokens.current.text.lower() in _FILLS:
            fill = Fill(tokens.take().text.lower())  # type: ignore[arg-type] # one of its kinds
        else:
            number = self.value()
            if not isinstance(number, Constant) or isinstance(number.value, str | bool):
                raise SyntaxFault("expected number argument in fill()")
            fill = Fill("number", float(number.value))
        tokens.expect_sign(")")
        return fill

    def _order(self) -> bool:
        if not self.tokens.take_word("ORDER"):
            return False
        self.tokens.expect_word("BY")
        if not self.tokens.current.is_word("ASC", "DESC") and self.identifier().lower() != "time":
            raise SyntaxFault("only ORDER BY time supported at this time")
        return self.tokens.current.is_word("ASC", "DESC") and self.tokens.take().is_word("DESC")

    def _cut(self) -> Cut:
        found = {}
        for word in ("LIMIT", "OFFSET", "SLIMIT", "SOFFSET"):
            if self.tokens.take_word(word):
                if self.tokens.current.kind != "integer":
                    raise self.tokens.unexpected("integer")
                found[word] = min(int(self.tokens.take().text[:18]), 2**53)
        return Cut(
            limit=found.get("LIMIT", 0),
            offset=found.get("OFFSET", 0),
            series_limit=found.get("SLIMIT", 0),
            series_offset=found.get("SOFFSET", 0),
        )

    def _zone(self) -> str:
        if not self.tokens.take_word("TZ"):
            return ""
        self.tokens.expect_sign("(")
        if self.tokens.current.kind != "text":
            raise self.tokens.unexpected("string")
        name = self.tokens.take().text
        self.tokens.expect_sign(")")
        return name

    # SHOW

    def _show(self) -> Show | Unserved:
        kind, counts = self._show_kind()
        if kind is None:
            self._skip()
            return Unserved(
                "this SHOW is not served here; databases, retention policies, measurements, tag keys, tag "
                "values, field keys and series are"
            )
        database = ""
        if self.tokens.take_word("ON"):
            database = self.identifier()
        sources: tuple[Measurement, ...] = ()
        if kind != "MEASUREMENTS" and self.tokens.take_word("FROM"):
            sources = tuple(source for source in self._sources() if isinstance(source, Measurement))
        keys = self._with() if self.tokens.take_word("WITH") else None
        if kind == "TAG VALUES" and keys is None:
            raise self.tokens.unexpected("WITH")
        where = self.condition() if self.tokens.take_word("WHERE") else None
        if self.tokens.current.is_word("GROUP"):
            self._dimensions()
        self._order()
        cut = self._cut()
        return Show(kind=kind, database=database, sources=sources, keys=keys, where=where, cut=cut, counts=counts)

    def _show_kind(self) -> tuple[ShowKind | None, bool]:
        self.tokens.take_word("EXACT")
        first = self.tokens.current.text.upper()
        self._take_any()
        kind = _SHOWN_ALONE.get(first)
        if kind is None:
            kind = _SHOWN.get((first, self.tokens.current.text.upper()))
            if kind is None:
                return None, False
            self.tokens.take()
        return kind, self.tokens.take_word("CARDINALITY")

    def _take_any(self) -> None:
        if self.tokens.current.kind != "word":
            raise self.tokens.unexpected("DATABASES", "FIELD", "MEASUREMENTS", "RETENTION", "SERIES", "TAG")
        self.tokens.take()

    def _with(self) -> KeyFilter:
        tokens = self.tokens
        tokens.expect_word("KEY", "MEASUREMENT")
        if tokens.take_word("IN"):
            tokens.expect_sign("(")
            names = [self._key()]
            while tokens.take_sign(","):
                names.append(self._key())
            tokens.expect_sign(")")
            return KeyFilter("in", tuple(names))
        if tokens.current.is_sign("=~", "!~"):
            sign = tokens.take().text
            pattern = tokens.take_pattern()
            if pattern is None:
                raise tokens.unexpected("regex")
            return KeyFilter(sign, (), Pattern(pattern))
        if not tokens.current.is_sign("=", "!=", "<>"):
            raise tokens.unexpected("=", "!=", "=~", "!~", "IN")
        sign = tokens.take().text
        return KeyFilter("!=" if sign == "<>" else sign, (self._key(),))

    def _key(self) -> str:
        return self.tokens.take().text if self.tokens.current.kind == "text" else self.identifier()


_SHOWN_ALONE: dict[str, ShowKind] = {
    "DATABASES": "DATABASES",
    "MEASUREMENTS": "MEASUREMENTS",
    "MEASUREMENT": "MEASUREMENTS",
    "SERIES": "SERIES",
}
_SHOWN: dict[tuple[str, str], ShowKind] = {
    ("RETENTION", "POLICIES"): "RETENTION POLICIES",
    ("TAG", "KEYS"): "TAG KEYS",
    ("TAG", "KEY"): "TAG KEYS",
    ("TAG", "VALUES"): "TAG VALUES",
    ("FIELD", "KEYS"): "FIELD KEYS",
    ("FIELD", "KEY"): "FIELD KEYS",
}


def _interval(call: Call) -> tuple[int, int]:
    """Length and offset of ``time(1m, 10s)``."""
    if call.name != "time":
        raise SyntaxFault("only time() calls allowed in dimensions")
    if len(call.args) not in (1, 2):
        raise SyntaxFault("time dimension expected 1 or 2 arguments")
    lengths = [arg.ns if isinstance(arg, Length) else None for arg in call.args]
    interval_ns, offset_ns = lengths[0], lengths[-1] if len(lengths) == 2 else 0
    if interval_ns is None or interval_ns <= 0:
        raise SyntaxFault("time dimension must have duration argument")
    if offset_ns is None:
        raise SyntaxFault("time dimension offset must be duration or now()")
    return interval_ns, offset_ns % interval_ns


def _tag(expr: Expr) -> str:
    if isinstance(expr, Ref):
        return expr.name
    raise SyntaxFault("only time and tag dimensions allowed")
