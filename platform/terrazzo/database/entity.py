"""``Entity``: the definition of a kind of stored record (table, columns, text key, owner)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from enum import Enum

import msgspec
import sqlalchemy as sa

from terrazzo.database.field import BIG, Field, FieldKind, flag, moment, number, reference, text

METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

COMPANY = "permission_company_id"


class Uid(Enum):
    """Where a record's text key comes from."""

    GIVEN = "given"  # by the caller, for good
    GENERATED = "generated"  # short random hex
    FROM_ID = "from id"  # the id as text


class Entity(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The definition of a kind of record; a repository stores and finds records by it. There is one of each kind."""

    name: str
    table: sa.Table
    fields: dict[str, Field]  # by name, without id
    uid: Uid
    uid_name: str  # the column that is the text key
    company: str  # the column that says whose the record is
    created: str
    modified: str

    @property
    def references(self) -> list[Field]:
        """The columns that refer to records of other entities, without the owning company."""
        return [field for field in self.fields.values() if field.references and field.name != self.company]

    def writable(self) -> list[Field]:
        """The columns that a caller may set."""
        return [field for field in self.fields.values() if not field.read_only and not field.internal]


def define(
    name: str,
    *fields: Field,
    uid: Uid = Uid.GENERATED,
    key: Field | None = None,
    company: str = COMPANY,
    created: str = "created",
    modified: str = "last_modified",
    sorts: tuple[str, ...] = (),
) -> Entity:
    """Defines an entity and its table.

    Args:
        key: the column of the text key, where it isn't a ``uid`` of 64 characters.
        company: the column of the owning company's id; ``id`` where the record is a company itself.
        created, modified: the columns of the times of creation and of the last change.
        sorts: columns besides the name that get an index, because long lists are sorted by them.
    """
    key = key or text("uid", 64, default=None, required=uid is Uid.GIVEN, read_only=uid is not Uid.GIVEN)
    owner = [reference(COMPANY, "company", required=True)] if company == COMPANY else []
    times = [moment(created, read_only=True, required=True), moment(modified, read_only=True, required=True)]
    columns = {field.name: field for field in (key, *owner, *fields, *times)}
    return Entity(
        name=name,
        table=_table(name, columns, key.name, company, sorts),
        fields=columns,
        uid=uid,
        uid_name=key.name,
        company=company,
        created=created,
        modified=modified,
    )


def past(table: sa.Table, fields: Iterable[Field], *, moment: str, key: str = "id") -> Entity:
    """Describes a table that is no entity (events, messages, ...), so that ``Selection`` can make conditions on it.

    Args:
        fields: the columns that conditions may name.
        moment: the column of its time, which pages are ordered by.
        key: the name of the id as text.
    """
    return Entity(
        name=table.name,
        table=table,
        fields={field.name: field for field in fields},
        uid=Uid.FROM_ID,
        uid_name=key,
        company="company_id",
        created=moment,
        modified=moment,
    )


def authors() -> tuple[Field, ...]:
    """The columns that most records share: ``reference``, who created and last changed it, ``is_available``."""
    return text("reference", 64), number("created_by"), number("last_modified_by"), flag("is_available", default=1)


def _table(name: str, fields: dict[str, Field], key: str, company: str, sorts: tuple[str, ...]) -> sa.Table:
    table = sa.Table(
        name,
        METADATA,
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        *(field.column() for field in fields.values()),
        sa.UniqueConstraint(key),
        sqlite_autoincrement=True,  # an id is never used twice: time series are stored under it
    )
    table.c[key].nullable = False
    for field in fields.values():
        if field.kind is FieldKind.REFERENCE and field.name != company:
            sa.Index(None, table.c[field.name])
    if company != "id":
        sa.Index(None, table.c[company], table.c.id)  # a company's page, newest or oldest first
        for column in (*(["name"] if "name" in fields else []), *sorts):
            sa.Index(None, table.c[company], table.c[column], table.c.id)
            sa.Index(None, table.c[column], table.c.id)  # of all companies
    return table


def new_uid() -> str:
    """A random uid: twelve hexadecimal digits that don't read as a number, so that it is never taken for an id."""
    uid = secrets.token_hex(6)
    return uid if not uid.isdigit() else new_uid()
