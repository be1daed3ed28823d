"""Alembic's entry point: works on the connection that ``metadata.migration`` hands over."""

from alembic import context

from terrazzo.metadata import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.COMMAND.metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
