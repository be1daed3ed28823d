"""Creates what the component interfaces keep: service, offline data, files, groups."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_collect()
    _create_file()
    _create_object_group()
    _create_upload()
    _create_collectos()
    _create_object_dashboard()
    _create_object_group_map()
    _create_service()


def _create_collect() -> None:
    op.create_table(
        "collect",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("block_id", sa.String(length=64), nullable=False),
        sa.Column("class_id", sa.String(length=32), nullable=False),
        sa.Column("is_active", sa.SmallInteger(), nullable=False),
        sa.Column("option", sa.Text(), nullable=True),
        sa.Column("script", sa.Text(), nullable=True),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_collect_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collect")),
        sa.UniqueConstraint("uid", name=op.f("uq_collect_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_collect_name_id"), "collect", ["name", "id"])
    op.create_index(op.f("ix_collect_permission_company_id_id"), "collect", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_collect_permission_company_id_name_id"), "collect", ["permission_company_id", "name", "id"]
    )


def _create_file() -> None:
    op.create_table(
        "file",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("file", sa.Text(), nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"], ["company.id"], name=op.f("fk_file_permission_company_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file")),
        sa.UniqueConstraint("uid", name=op.f("uq_file_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_file_name_id"), "file", ["name", "id"])
    op.create_index(op.f("ix_file_permission_company_id_id"), "file", ["permission_company_id", "id"])
    op.create_index(op.f("ix_file_permission_company_id_name_id"), "file", ["permission_company_id", "name", "id"])


def _create_object_group() -> None:
    op.create_table(
        "object_group",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_object_group_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_object_group")),
        sa.UniqueConstraint("uid", name=op.f("uq_object_group_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_object_group_name_id"), "object_group", ["name", "id"])
    op.create_index(op.f("ix_object_group_permission_company_id_id"), "object_group", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_object_group_permission_company_id_name_id"), "object_group", ["permission_company_id", "name", "id"]
    )


def _create_upload() -> None:
    op.create_table(
        "upload",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=32), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("type", sa.String(length=128), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"], ["company.id"], name=op.f("fk_upload_permission_company_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload")),
        sa.UniqueConstraint("uid", name=op.f("uq_upload_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_upload_name_id"), "upload", ["name", "id"])
    op.create_index(op.f("ix_upload_permission_company_id_id"), "upload", ["permission_company_id", "id"])
    op.create_index(op.f("ix_upload_permission_company_id_name_id"), "upload", ["permission_company_id", "name", "id"])


def _create_collectos() -> None:
    op.create_table(
        "collectos",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("class_id", sa.String(length=32), nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("value", sa.String(length=16384), nullable=False),
        sa.Column("file", sa.String(length=32), nullable=False),
        sa.Column("collector", sa.String(length=32), nullable=False),
        sa.Column("collect_at", BIG, nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(["object_id"], ["object.id"], name=op.f("fk_collectos_object_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_collectos_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["collect.id"], name=op.f("fk_collectos_project_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collectos")),
        sa.UniqueConstraint("uid", name=op.f("uq_collectos_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_collectos_collect_at_id"), "collectos", ["collect_at", "id"])
    op.create_index(op.f("ix_collectos_name_id"), "collectos", ["name", "id"])
    op.create_index(op.f("ix_collectos_object_id"), "collectos", ["object_id"])
    op.create_index(op.f("ix_collectos_object_id_project_id_id"), "collectos", ["object_id", "project_id", "id"])
    op.create_index(
        op.f("ix_collectos_permission_company_id_collect_at_id"),
        "collectos",
        ["permission_company_id", "collect_at", "id"],
    )
    op.create_index(op.f("ix_collectos_permission_company_id_id"), "collectos", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_collectos_permission_company_id_name_id"), "collectos", ["permission_company_id", "name", "id"]
    )
    op.create_index(op.f("ix_collectos_project_id"), "collectos", ["project_id"])


def _create_object_dashboard() -> None:
    op.create_table(
        "object_dashboard",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("dashboard_id", BIG, nullable=False),
        sa.Column("category", sa.String(length=16), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["dashboard_id"], ["dashboard.id"], name=op.f("fk_object_dashboard_dashboard_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["object_id"], ["object.id"], name=op.f("fk_object_dashboard_object_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_object_dashboard_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_object_dashboard")),
        sa.UniqueConstraint("uid", name=op.f("uq_object_dashboard_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_object_dashboard_dashboard_id"), "object_dashboard", ["dashboard_id"])
    op.create_index(op.f("ix_object_dashboard_object_id"), "object_dashboard", ["object_id"])
    op.create_index(
        op.f("ix_object_dashboard_object_id_dashboard_id"),
        "object_dashboard",
        ["object_id", "dashboard_id"],
        unique=True,
    )
    op.create_index(
        op.f("ix_object_dashboard_permission_company_id_id"), "object_dashboard", ["permission_company_id", "id"]
    )


def _create_object_group_map() -> None:
    op.create_table(
        "object_group_map",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("group_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["object_group.id"], name=op.f("fk_object_group_map_group_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["object_id"], ["object.id"], name=op.f("fk_object_group_map_object_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_object_group_map_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_object_group_map")),
        sa.UniqueConstraint("uid", name=op.f("uq_object_group_map_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_object_group_map_group_id"), "object_group_map", ["group_id"])
    op.create_index(
        op.f("ix_object_group_map_group_id_object_id"), "object_group_map", ["group_id", "object_id"], unique=True
    )
    op.create_index(op.f("ix_object_group_map_object_id"), "object_group_map", ["object_id"])
    op.create_index(
        op.f("ix_object_group_map_permission_company_id_id"), "object_group_map", ["permission_company_id", "id"]
    )


def _create_service() -> None:
    op.create_table(
        "service",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("category", sa.String(length=64), nullable=False),
        sa.Column("file", sa.String(length=128), nullable=False),
        sa.Column("staff_id", BIG, nullable=False),
        sa.Column("staff_name", sa.String(length=32), nullable=False),
        sa.Column("service_at", BIG, nullable=True),
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(["object_id"], ["object.id"], name=op.f("fk_service_object_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_service_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_service")),
        sa.UniqueConstraint("uid", name=op.f("uq_service_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_service_name_id"), "service", ["name", "id"])
    op.create_index(op.f("ix_service_object_id"), "service", ["object_id"])
    op.create_index(op.f("ix_service_permission_company_id_id"), "service", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_service_permission_company_id_name_id"), "service", ["permission_company_id", "name", "id"]
    )
    op.create_index(
        op.f("ix_service_permission_company_id_service_at_id"), "service", ["permission_company_id", "service_at", "id"]
    )
    op.create_index(op.f("ix_service_service_at_id"), "service", ["service_at", "id"])
