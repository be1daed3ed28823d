"""Alembic's entry point: runs on the connection that ``terrazzo.database.migration`` passes to it."""

from alembic import context

from terrazzo.database.entity import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,  # of SQLite too: an upgrade happens as a whole or not at all
)
with context.begin_transaction():
    context.run_migrations()
