"""Creates the registry, the journal of commands, revoked tokens and the change log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_change()
    _create_command()
    _create_company()
    _create_revoked_token()
    _create_configuration()
    _create_control()
    _create_mapping()
    _create_user()
    _create_object()
    _create_terminal()
    _create_object_terminal()


def _create_change() -> None:
    op.create_table(
        "change",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("entity", sa.String(length=32), nullable=False),
        sa.Column("record_id", BIG, nullable=False),
        sa.Column("uid", sa.String(length=96), nullable=False),
        sa.Column("changed_us", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_change_changed_us"), "change", ["changed_us"], unique=False)


def _create_command() -> None:
    op.create_table(
        "command",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=32), nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("terminal_id", sa.String(length=64), nullable=False),
        sa.Column("object_id", BIG, nullable=True),
        sa.Column("command", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("queued_us", BIG, nullable=False),
        sa.Column("sent_us", BIG, nullable=True),
        sa.Column("delivered_us", BIG, nullable=True),
        sa.Column("answered_us", BIG, nullable=True),
        sa.Column("ended_us", BIG, nullable=True),
        sa.Column("expires_us", BIG, nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_command")),
        sa.UniqueConstraint("uid", name=op.f("uq_command_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_command_company_id_id"), "command", ["company_id", "id"], unique=False)
    op.create_index(
        op.f("ix_command_company_id_idempotency_key"), "command", ["company_id", "idempotency_key"], unique=False
    )
    op.create_index(op.f("ix_command_state_expires_us"), "command", ["state", "expires_us"], unique=False)
    op.create_index(op.f("ix_command_terminal_id_state_id"), "command", ["terminal_id", "state", "id"], unique=False)


def _create_company() -> None:
    op.create_table(
        "company",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("contact", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=128), nullable=False),
        sa.Column("phone", sa.String(length=32), nullable=False),
        sa.Column("address", sa.String(length=255), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_company")),
        sa.UniqueConstraint("uid", name=op.f("uq_company_uid")),
        sqlite_autoincrement=True,
    )


def _create_revoked_token() -> None:
    op.create_table(
        "revoked_token",
        sa.Column("jti", sa.String(length=96), nullable=False),
        sa.Column("expires_us", BIG, nullable=False),
        sa.PrimaryKeyConstraint("jti", name=op.f("pk_revoked_token")),
    )
    op.create_index(op.f("ix_revoked_token_expires_us"), "revoked_token", ["expires_us"], unique=False)


def _create_configuration() -> None:
    op.create_table(
        "configuration",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("hardware", sa.String(length=64), nullable=False),
        sa.Column("mcu_file", sa.String(length=128), nullable=False),
        sa.Column("mcu_version", sa.String(length=32), nullable=False),
        sa.Column("remosu_file", sa.String(length=128), nullable=False),
        sa.Column("remosu_version", sa.String(length=32), nullable=False),
        sa.Column("lua_file", sa.String(length=128), nullable=False),
        sa.Column("lua_version", sa.String(length=32), nullable=False),
        sa.Column("terminal_script", sa.Text(), nullable=True),
        sa.Column("config_script", sa.Text(), nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_configuration_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_configuration")),
        sa.UniqueConstraint("uid", name=op.f("uq_configuration_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_configuration_permission_company_id_id"),
        "configuration",
        ["permission_company_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_configuration_permission_company_id_name_id"),
        "configuration",
        ["permission_company_id", "name", "id"],
        unique=False,
    )


def _create_control() -> None:
    op.create_table(
        "control",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_control_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_control")),
        sa.UniqueConstraint("uid", name=op.f("uq_control_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_control_permission_company_id_id"), "control", ["permission_company_id", "id"], unique=False
    )
    op.create_index(
        op.f("ix_control_permission_company_id_name_id"),
        "control",
        ["permission_company_id", "name", "id"],
        unique=False,
    )


def _create_mapping() -> None:
    op.create_table(
        "mapping",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("addition", sa.Text(), nullable=True),
        sa.Column("template", sa.Text(), nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_mapping_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mapping")),
        sa.UniqueConstraint("uid", name=op.f("uq_mapping_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_mapping_permission_company_id_id"), "mapping", ["permission_company_id", "id"], unique=False
    )
    op.create_index(
        op.f("ix_mapping_permission_company_id_name_id"),
        "mapping",
        ["permission_company_id", "name", "id"],
        unique=False,
    )


def _create_user() -> None:
    op.create_table(
        "user",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=False),
        sa.Column("token_epoch", BIG, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("head_image", sa.String(length=255), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("mobile", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=128), nullable=False),
        sa.Column("is_active", sa.SmallInteger(), nullable=False),
        sa.Column("is_super", sa.SmallInteger(), nullable=False),
        sa.Column("is_default", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"], ["company.id"], name=op.f("fk_user_permission_company_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user")),
        sa.UniqueConstraint("username", name=op.f("uq_user_username")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_user_permission_company_id_id"), "user", ["permission_company_id", "id"], unique=False)


def _create_object() -> None:
    op.create_table(
        "object",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("image", sa.String(length=128), nullable=False),
        sa.Column("province", sa.String(length=16), nullable=False),
        sa.Column("city", sa.String(length=16), nullable=False),
        sa.Column("file_id", BIG, nullable=True),
        sa.Column("mapping_id", BIG, nullable=True),
        sa.Column("control_id", BIG, nullable=True),
        sa.Column("customer_id", sa.String(length=64), nullable=False),
        sa.Column("terminal_list", sa.Text(), nullable=True),
        sa.Column("object_list", sa.Text(), nullable=True),
        sa.Column("model", sa.String(length=32), nullable=False),
        sa.Column("serial_no", sa.String(length=32), nullable=False),
        sa.Column("gis", sa.String(length=128), nullable=False),
        sa.Column("secret", sa.String(length=16), nullable=False),
        sa.Column("control", sa.String(length=16), nullable=False),
        sa.Column("addition", sa.Text(), nullable=True),
        sa.Column("template", sa.Text(), nullable=True),
        sa.Column("script", sa.Text(), nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(["control_id"], ["control.id"], name=op.f("fk_object_control_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["mapping_id"], ["mapping.id"], name=op.f("fk_object_mapping_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(
            ["permission_company_id"], ["company.id"], name=op.f("fk_object_permission_company_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_object")),
        sa.UniqueConstraint("uid", name=op.f("uq_object_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_object_control_id"), "object", ["control_id"], unique=False)
    op.create_index(op.f("ix_object_mapping_id"), "object", ["mapping_id"], unique=False)
    op.create_index(op.f("ix_object_permission_company_id_id"), "object", ["permission_company_id", "id"], unique=False)
    op.create_index(
        op.f("ix_object_permission_company_id_name_id"), "object", ["permission_company_id", "name", "id"], unique=False
    )


def _create_terminal() -> None:
    op.create_table(
        "terminal",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("maker", sa.String(length=64), nullable=False),
        sa.Column("config_id", BIG, nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("username", sa.String(length=32), nullable=False),
        sa.Column("pin", sa.Text(), nullable=False),
        sa.Column("access", sa.String(length=16), nullable=False),
        sa.Column("topic", sa.String(length=64), nullable=False),
        sa.Column("server", sa.String(length=32), nullable=False),
        sa.Column("session_expiry", BIG, nullable=False),
        sa.Column("keep_alive", BIG, nullable=False),
        sa.Column("encryption", sa.SmallInteger(), nullable=False),
        sa.Column("dixie", sa.SmallInteger(), nullable=False),
        sa.Column("rsa_privatekey", sa.Text(), nullable=False),
        sa.Column("is_route", sa.SmallInteger(), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("activated", BIG, nullable=True),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["config_id"], ["configuration.id"], name=op.f("fk_terminal_config_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_terminal_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_terminal")),
        sa.UniqueConstraint("uid", name=op.f("uq_terminal_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_terminal_config_id"), "terminal", ["config_id"], unique=False)
    op.create_index(
        op.f("ix_terminal_permission_company_id_id"), "terminal", ["permission_company_id", "id"], unique=False
    )
    op.create_index(
        op.f("ix_terminal_permission_company_id_name_id"),
        "terminal",
        ["permission_company_id", "name", "id"],
        unique=False,
    )


def _create_object_terminal() -> None:
    op.create_table(
        "object_terminal",
        sa.Column("object_id", BIG, autoincrement=False, nullable=False),
        sa.Column("terminal_id", BIG, nullable=False),
        sa.Column("position", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["object_id"], ["object.id"], name=op.f("fk_object_terminal_object_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["terminal_id"], ["terminal.id"], name=op.f("fk_object_terminal_terminal_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("object_id", "terminal_id", name=op.f("pk_object_terminal")),
    )
    op.create_index(op.f("ix_object_terminal_terminal_id"), "object_terminal", ["terminal_id"], unique=False)
