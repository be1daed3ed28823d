"""The scripts as the analysis sees them: which run, on which objects, and what tells one version from the next."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from enum import StrEnum
from itertools import accumulate
from typing import Any, NamedTuple, overload

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


class ScriptKey(NamedTuple):
    """Which script it is: ids are of one kind's."""

    kind: ScriptKind
    script_id: int


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One script. ``body``: a ``StatisticsRows``, ``Formulas``, or a ``Balance``; ``named``: its objects as a set."""

    kind: ScriptKind
    id: int
    uid: str
    company_id: int
    objects: tuple[int, ...]
    named: frozenset[int]
    is_active: bool
    digest: str
    body: Any


class Job(NamedTuple):
    """One script on one object: what the analysis works off and keeps progress of."""

    kind: ScriptKind
    script_id: int
    object_id: int


class CompanyJobs(Sequence[tuple[Script, Job]]):
    """The jobs of a company, each script on each of its objects: as a list would have them, made when they are asked.

    Args:
        scripts: those that run, with their objects.
    """

    def __init__(self, scripts: Iterable[tuple[Script, Sequence[int]]]) -> None:
        self._scripts = [each for each in scripts if each[1]]
        self._ends = list(accumulate(len(objects) for _, objects in self._scripts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, place: int) -> tuple[Script, Job]: ...

    @overload
    def __getitem__(self, place: slice) -> list[tuple[Script, Job]]: ...

    def __getitem__(self, place: int | slice) -> tuple[Script, Job] | list[tuple[Script, Job]]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        at = bisect_right(self._ends, place)
        script, objects = self._scripts[at]
        return script, Job(script.kind, script.id, objects[place - self._ends[at]])


class _CompanyScripts:
    """A company's scripts, and on which objects its statistics are."""

    def __init__(self) -> None:
        self.scripts: dict[ScriptKind, dict[int, Script]] = {kind: {} for kind in ScriptKind}
        self.measured: Counter[int] = Counter()  # by object, how many statistics scripts name it
        self._objects: tuple[int, ...] | None = None  # of ``measured``, in order
        self._jobs: CompanyJobs | None = None

    def put(self, script: Script) -> None:
        self.drop(script.kind, script.id)
        self.scripts[script.kind][script.id] = script
        if script.kind is ScriptKind.STATISTICS:
            self.measured.update(script.named)

    def drop(self, kind: ScriptKind, script_id: int) -> None:
        self._jobs = None
        script = self.scripts[kind].pop(script_id, None)
        if kind is not ScriptKind.STATISTICS:
            return
        self._objects = None
        for object_id in script.named if script is not None else ():
            self.measured[object_id] -= 1
            if not self.measured[object_id]:
                del self.measured[object_id]

    def objects(self, script: Script) -> tuple[int, ...]:
        if script.objects or script.kind is not ScriptKind.CALCULATE:
            return script.objects
        if self._objects is None:
            self._objects = tuple(sorted(self.measured))
        return self._objects

    def names(self, script: Script, object_id: int) -> bool:
        """Whether a script is for an object."""
        if script.objects or script.kind is not ScriptKind.CALCULATE:
            return object_id in script.named
        return object_id in self.measured

    def jobs(self) -> CompanyJobs:
        if self._jobs is None:
            running = [
                each
                for kind in ScriptKind
                for _, each in sorted(self.scripts[kind].items(), key=lambda item: item[0])
                if each.is_active
            ]
            self._jobs = CompanyJobs((script, self.objects(script)) for script in running)
        return self._jobs


class ScriptCatalogue:
    """All scripts, kept in step with their records. A change costs what its script has, whatever others have."""

    def __init__(self, zone: tzinfo) -> None:
        self.memory = ScriptMemory()
        self._zone = zone
        self._scripts: dict[ScriptKey, Script] = {}
        self._companies: dict[int, _CompanyScripts] = {}
        self._mappings: dict[int, str | None] = {}  # by object

    def put(self, kind: ScriptKind, script_id: int, row: Row | None) -> None:
        """Takes over a created or changed script; None: it was deleted.

        Raises:
            Exception: the row can't be read; then the script is none that runs.
        """
        before = self._scripts.pop(ScriptKey(kind, script_id), None)
        if before is not None:
            self._companies[before.company_id].drop(kind, script_id)
        self.memory.put(ScriptKey(kind, script_id), row)
        if row is not None:
            script = self._scripts[ScriptKey(kind, script_id)] = _script(kind, row, str(self._zone))
            self._companies.setdefault(script.company_id, _CompanyScripts()).put(script)

    def get(self, kind: ScriptKind, script_id: int) -> Script | None:
        """The script of this kind and id."""
        return self._scripts.get(ScriptKey(kind, script_id))

    def running(self, job: Job) -> Script | None:
        """The script of a job that runs; None: it doesn't, or not on this object any more."""
        script = self._scripts.get(ScriptKey(job.kind, job.script_id))
        if script is None or not script.is_active:
            return None
        return script if self._companies[script.company_id].names(script, job.object_id) else None

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

    def companies(self) -> list[int]:
        """The companies that have scripts, running or not."""
        return list(self._companies)

    def jobs(self, company_id: int) -> CompanyJobs:
        """What runs of a company: statistics first, because calculations follow from them."""
        return self._companies[company_id].jobs()

    def objects(self, script: Script) -> tuple[int, ...]:
        """A calculation without objects is made for those of the company's statistics."""
        return self._companies[script.company_id].objects(script)

    def named(self, company_id: int) -> list[int]:
        """The objects that a company's scripts name, running or not."""
        company = self._companies.get(company_id)
        scripts = company.scripts.values() if company is not None else ()
        return sorted({object_id for some in scripts for each in some.values() for object_id in each.named})

    def calculations(self, company_id: int, object_id: int) -> list[Script]:
        """The calculation scripts of an object."""
        company = self._companies.get(company_id)
        if company is None:
            return []
        return [each for each in company.scripts[ScriptKind.CALCULATE].values() if company.names(each, object_id)]


def _script(kind: ScriptKind, row: Row, zone: str) -> Script:
    said = (
        [row["script"]] if kind is not ScriptKind.BALANCE else [row["target_code"], row["input_codes"], row["window"]]
    )
    digest = hashlib.sha256(msgspec.json.encode([zone, *said])).hexdigest()
    objects = tuple(int(key) for key in row["object_list"] or ())
    return Script(
        kind=kind,
        id=row["id"],
        uid=row["uid"],
        company_id=row[COMPANY],
        objects=objects,
        named=frozenset(objects),
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
