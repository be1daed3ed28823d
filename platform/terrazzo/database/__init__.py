"""The metadata database: connection, migrations, table definitions, conditions in SQL, pages and the change log."""
