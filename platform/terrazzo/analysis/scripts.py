"""The scripts as the analysis sees them: which run, on which objects, and what tells one version from the next."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from terrazzo.analysis.script_memory import ScriptMemory
from terrazzo.analysis.statistics_rows import StatisticsRows, parse_statistics_rows
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.expressions.expression import Expression, parse_expression
from terrazzo.expressions.tokens import ExpressionError
from terrazzo.loop_pauses import Steps


class ScriptKind(StrEnum):
    """The kinds of scripts: statistics, calculation, balance."""

    STATISTICS = "statistics"
    CALCULATE = "calculate"
    BALANCE = "balance"


class Formula(NamedTuple):
    """A row of a calculation script; None: an expression that was stored and is none."""

    var_name: str
    expression: Expression | None


class Formulas:
    """The rows of a calculation script; they are read when they are needed first, which takes up to half a second."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        self._rows = rows
        self._found: tuple[Formula, ...] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """The names of the variables."""
        return [name for name, _ in self._rows]

    def reading(self) -> Steps[tuple[Formula, ...]]:
        """The formulas, step by step."""
        if self._found is None:
            found = []
            for name, text in self._rows:
                found.append(Formula(name, _expression(text)))
                yield
            self._found = tuple(found)
        return self._found


class Balance(NamedTuple):
    """The definition of a balance: its target, its inputs and its window."""

    target: str
    inputs: tuple[str, ...]
    window_us: int


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One script. ``body``: a ``StatisticsRows``, ``Formulas``, or a ``Balance``."""

    kind: ScriptKind
    id: int
    uid: str
    company_id: int
    objects: tuple[int, ...]
    is_active: bool
    digest: str
    body: Any


class Job(NamedTuple):
    """One script on one object: what the analysis works off and keeps progress of."""

    kind: ScriptKind
    script_id: int
    object_id: int


class ScriptCatalogue:
    """All scripts, kept in step with their records."""

    def __init__(self, zone: tzinfo) -> None:
        self.memory = ScriptMemory()
        self._zone = zone
        self._scripts: dict[tuple[ScriptKind, int], Script] = {}
        self._mappings: dict[int, str | None] = {}  # by object
        self._jobs: dict[int, list[tuple[Script, Job]]] | None = None

    def put(self, kind: ScriptKind, script_id: int, row: Row | None) -> None:
        """Takes over a created or changed script; None: it was deleted."""
        self._jobs = None
        self.memory.put((kind, script_id), row)
        if row is None:
            self._scripts.pop((kind, script_id), None)
        else:
            self._scripts[kind, script_id] = _script(kind, row, str(self._zone))

    def get(self, kind: ScriptKind, script_id: int) -> Script | None:
        """The script of this kind and id."""
        return self._scripts.get((kind, script_id))

    def load_objects(self, ids: Iterable[int], mappings: Iterable[str | None]) -> None:
        """Takes over objects, each by its id and the uid of its mapping; None: it has none."""
        self._mappings.update(zip(ids, mappings, strict=True))

    def put_object(self, object_id: int, mapping: str | None) -> None:
        """Takes over a created or changed object, by the uid of its mapping; None: it has none."""
        self._mappings[object_id] = mapping

    def drop_object(self, object_id: int) -> None:
        """Forgets an object that was deleted; unknown ids are ignored."""
        self._mappings.pop(object_id, None)

    def mapping(self, object_id: int) -> str | None:
        """The uid of an object's mapping."""
        return self._mappings.get(object_id)

    def __iter__(self) -> Iterator[Script]:
        return iter(list(self._scripts.values()))

    def jobs(self) -> Mapping[int, Sequence[tuple[Script, Job]]]:
        """What runs, by company: statistics first, because calculations follow from them."""
        if self._jobs is None:
            self._jobs = self._find_jobs()
        return self._jobs

    def _find_jobs(self) -> dict[int, list[tuple[Script, Job]]]:
        order, jobs = list(ScriptKind), dict[int, list[tuple[Script, Job]]]()
        running = sorted((each for each in self if each.is_active), key=lambda each: (order.index(each.kind), each.id))
        for script in running:
            mine = jobs.setdefault(script.company_id, [])
            mine += [(script, Job(script.kind, script.id, object_id)) for object_id in self.objects(script)]
        return jobs

    def objects(self, script: Script) -> tuple[int, ...]:
        """A calculation without objects is made for those of the company's statistics."""
        if script.objects or script.kind is not ScriptKind.CALCULATE:
            return script.objects
        others = [each for each in self if each.kind is ScriptKind.STATISTICS and each.company_id == script.company_id]
        return tuple(sorted({object_id for each in others for object_id in each.objects}))

    def calculations(self, company_id: int, object_id: int) -> list[Script]:
        """The calculation scripts of an object."""
        mine = [each for each in self if each.kind is ScriptKind.CALCULATE and each.company_id == company_id]
        return [each for each in mine if object_id in self.objects(each)]


def _script(kind: ScriptKind, row: Row, zone: str) -> Script:
    said = (
        [row["script"]] if kind is not ScriptKind.BALANCE else [row["target_code"], row["input_codes"], row["window"]]
    )
    digest = hashlib.sha256(msgspec.json.encode([zone, *said])).hexdigest()
    return Script(
        kind=kind,
        id=row["id"],
        uid=row["uid"],
        company_id=row[COMPANY],
        objects=tuple(int(key) for key in row["object_list"] or ()),
        is_active=bool(row["is_active"] and row["is_available"]),
        digest=digest,
        body=_BODIES[kind](row),
    )


def _statistics_rows(row: Row) -> StatisticsRows:
    return parse_statistics_rows(row["script"] or ())


def _formulas(row: Row) -> Formulas:
    return Formulas(row["script"] or ())


def _expression(text: str) -> Expression | None:
    try:
        return parse_expression(text)
    except ExpressionError:
        return None  # stored before expressions were checked: its results are empty


def _balance(row: Row) -> Balance:
    return Balance(row["target_code"], tuple(row["input_codes"] or ()), row["window"] * 1_000_000)


_BODIES = {ScriptKind.STATISTICS: _statistics_rows, ScriptKind.CALCULATE: _formulas, ScriptKind.BALANCE: _balance}
