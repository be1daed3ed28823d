"""Which columns an import file may have, and how its cells become columns' values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from terrazzo.bulk.report import Issues
from terrazzo.bulk.rows import MOST_NAME_CHARACTERS
from terrazzo.database.entity import Entity, Uid
from terrazzo.database.field import Field, FieldKind
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import in_turns
from terrazzo.reasons import say
from terrazzo.userinfo import MASK

MOST_UID_CHARACTERS = 64


class Columns:
    """The columns that files of an entity may have.

    Args:
        ignored: names that exports and lists show but no column stores; ignored, so that such files can be imported.
    """

    def __init__(self, entity: Entity, ignored: Iterable[str] = ()) -> None:
        self.entity = entity
        self.writable = {each.name: each for each in entity.writable() if each.name != entity.company}
        read_only = {each.name for each in entity.fields.values() if each.read_only}
        self._ignored = {"id", *read_only, *ignored} - {entity.uid_name}
        self._known = {*self.writable, entity.uid_name, entity.company} | self._ignored
        self._there_are = ", ".join(sorted(self._known - self._ignored - {"id"}))
        self.required = [each.name for each in self.writable.values() if each.required]

    def check_header(self, header: list[str], issues: Issues, *, row: int, creates: bool) -> None:
        """Adds an issue for each unknown column and, if rows create records, for each required one that is missing."""
        self.check_names(header, issues, row=row)
        there = set(header)
        for name in self.required if creates else ():
            if name not in there:
                issues.add(row, name, "is required, and there is no such column")

    def check_names(self, names: Iterable[str], issues: Issues, *, row: int) -> None:
        """Adds an issue for each unknown column."""
        for name in names:
            if name not in self._known:
                issues.add(row, name[:MOST_NAME_CHARACTERS], f"no such column; there are {self._there_are}")

    async def parse_new(self, values: dict[str, Any], issues: Issues, *, row: int) -> dict[str, Any]:
        """The values of all columns of a new record; faults become issues."""
        return await self._parse(self.writable.values(), values, issues, row)

    async def parse_given(self, values: dict[str, Any], issues: Issues, *, row: int) -> dict[str, Any]:
        """The values of the columns that a row gives for an existing record; faults become issues."""
        fixed = (self.entity.uid_name, "created_by")
        given = [
            each
            for name, each in self.writable.items()
            if values.get(name) is not None and name not in fixed and not _is_mask(each, values[name])
        ]
        return await self._parse(given, values, issues, row)

    def uid_of(self, values: dict[str, Any]) -> str | None:
        """The text key in a row; None for a new record whose key the platform makes.

        Raises:
            BadParameter: it is no valid key.
        """
        name = self.entity.uid_name
        given = values.get(name)
        if given in (None, ""):
            return None
        if isinstance(given, bool) or not isinstance(given, str | int):
            raise BadParameter(name, say("expected_text"))
        uid = str(given)
        if self.entity.uid is Uid.FROM_ID:
            _check(
                name,
                uid.isascii() and uid.isdigit() and uid[0] != "0" and len(uid) <= 18,
                say("expected_number_from_1"),
            )
        elif self.entity.uid is Uid.GENERATED:
            is_plain = len(uid) <= MOST_UID_CHARACTERS and uid.isascii() and uid.replace("-", "").isalnum()
            _check(name, is_plain and not uid.isdigit(), say("expected_letters_and_digits"))
        return uid

    @staticmethod
    async def _parse(fields: Iterable[Field], values: dict[str, Any], issues: Issues, row: int) -> dict[str, Any]:
        draft = {}
        for each in fields:
            try:
                draft[each.name] = await in_turns(each.parsing(_cell(each, values.get(each.name))))
            except BadParameter as error:
                issues.add(row, each.name, error.reason)
        return draft


def _cell(field: Field, value: Any) -> Any:
    """A cell's value in its column's type: CSV has only text, and spreadsheets make numbers of digits."""
    if field.kind in (FieldKind.INTEGER, FieldKind.FLAG) and isinstance(value, str) and value.strip():
        return _integer(value.strip())
    if field.kind in (FieldKind.TEXT, FieldKind.SECRET) and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if _is_mask(field, value):
        raise BadParameter(field.name, say("exported_without_secrets", mask=MASK))
    return value


def _is_mask(field: Field, value: Any) -> bool:
    return field.kind is FieldKind.SECRET and value == MASK


def _integer(text: str) -> int | str:
    try:
        return int(text) if len(text) <= 20 else text
    except ValueError:
        return text


def _check(name: str, is_right: bool, reason: str) -> None:
    if not is_right:
        raise BadParameter(name, reason)
