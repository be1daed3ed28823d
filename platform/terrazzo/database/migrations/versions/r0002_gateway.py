"""Creates what the gateway manages besides the registry: customers, scripts, dashboards."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_customer()
    for name in ("retainer", "statistics", "calculate"):
        objects = sa.Column("object_list", sa.Text(), nullable=name == "calculate")
        _create(name, objects, _flag("is_active"), _json("script"), *_authors())
    _create_balance()
    _create_dashboard()
    _change_object()
    for name in ("configuration", "control", "mapping", "object", "terminal"):
        op.create_index(f"ix_{name}_name_id", name, ["name", "id"], unique=False)
    for column in ("created", "last_modified"):
        op.create_index(f"ix_terminal_{column}_id", "terminal", [column, "id"], unique=False)
        columns = ["permission_company_id", column, "id"]
        op.create_index(f"ix_terminal_{'_'.join(columns)}", "terminal", columns, unique=False)


def _create_customer() -> None:
    lengths = {
        "email": 128, "contact": 64, "mobile": 32, "phone": 32, "province": 64, "city": 64, "address": 255,
    }  # fmt: skip
    _create(
        "customer",
        *(_text(name, length) for name, length in lengths.items()),
        sa.Column("secret", sa.Text(), nullable=False),
        _text("responsible", 64),
        _text("responsible_phone", 32),
        _text("reference", 64),
        _flag("is_available"),
    )


def _create_balance() -> None:
    _create(
        "balance",
        _json("object_list"),
        _flag("is_active"),
        _text("target_code", 64),
        _json("input_codes"),
        sa.Column("window", BIG, nullable=False),
        *_authors(),
    )


def _create_dashboard() -> None:
    template = sa.Column("template", sa.Text(), nullable=True)
    _create("dashboard", _text("category", 16), _json("script"), template, *_authors())


def _change_object() -> None:
    """Makes ``customer_id`` a reference and ``secret`` sealed text; nothing could be written to either before."""
    if op.get_context().dialect.name == "sqlite":
        _remake_object()
    else:
        _retype(op)
    op.create_index(op.f("ix_object_customer_id"), "object", ["customer_id"], unique=False)


def _remake_object() -> None:
    """SQLite: recreates the table, with its links kept in a temporary table and its ids never used again."""
    last = op.get_bind().execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'object'")).scalar()
    op.execute("CREATE TEMPORARY TABLE links AS SELECT * FROM object_terminal")
    op.execute("DELETE FROM object_terminal")
    with op.batch_alter_table("object", recreate="always", table_kwargs={"sqlite_autoincrement": True}) as table:
        _retype(table)
    op.execute("INSERT INTO object_terminal SELECT * FROM links")
    op.execute("DROP TABLE links")
    if last is not None:
        op.execute("DELETE FROM sqlite_sequence WHERE name = 'object'")
        op.execute(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('object', {int(last)})")  # an int  # nosec B608


def _retype(table: Any) -> None:
    """The same steps for ``op`` (PostgreSQL), which takes the table's name first, and for a batch (SQLite)."""
    name = () if table is not op else ("object",)
    table.drop_column(*name, "customer_id")
    table.add_column(*name, sa.Column("customer_id", BIG, nullable=True))
    table.alter_column(*name, "secret", existing_type=sa.String(16), type_=sa.Text(), existing_nullable=False)
    to = ("customer", ["customer_id"], ["id"])
    table.create_foreign_key("fk_object_customer_id", *name, *to, ondelete="RESTRICT")


def _create(name: str, *columns: sa.Column[Any]) -> None:
    """Creates a table with the columns that every named entity has."""
    op.create_table(
        name,
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        _text("uid", 64),
        sa.Column("permission_company_id", BIG, nullable=False),
        _text("name", 64),
        _text("description", 255),
        *columns,
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"], ["company.id"], name=f"fk_{name}_permission_company_id", ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        sa.UniqueConstraint("uid", name=f"uq_{name}_uid"),
        sqlite_autoincrement=True,
    )
    for columns_ in (["permission_company_id", "id"], ["permission_company_id", "name", "id"], ["name", "id"]):
        op.create_index(f"ix_{name}_{'_'.join(columns_)}", name, columns_, unique=False)


def _authors() -> list[sa.Column[Any]]:
    created_by, last_modified_by = (sa.Column(name, BIG, nullable=False) for name in ("created_by", "last_modified_by"))
    return [_text("reference", 64), created_by, last_modified_by, _flag("is_available")]


def _text(name: str, length: int) -> sa.Column[Any]:
    return sa.Column(name, sa.String(length=length), nullable=False)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.SmallInteger(), nullable=False)


def _json(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)
