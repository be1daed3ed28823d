"""Alembic's entry point: works on the connection that ``metadata.migration`` hands over."""

from alembic import context

from terrazzo.database.entity import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,  # of SQLite too: an upgrade happens as a whole or not at all
)
with context.begin_transaction():
    context.run_migrations()
