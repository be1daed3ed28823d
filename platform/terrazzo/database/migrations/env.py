"""Alembic's entry point: runs on the connection that ``terrazzo.database.migration`` passes to it.

Without one (``alembic upgrade --sql``) it prints the statements for PostgreSQL.
"""

from alembic import context

from terrazzo.database.entity import METADATA

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"
"""A change of a table waits for who reads it, and whoever comes after waits behind it: it gives up soon instead."""

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", target_metadata=METADATA, literal_binds=True)
else:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=METADATA,
        transactional_ddl=True,  # of SQLite too: an upgrade happens as a whole or not at all
    )
with context.begin_transaction():
    if context.get_context().dialect.name == "postgresql":
        context.execute(LOCK_TIMEOUT)
    context.run_migrations()
