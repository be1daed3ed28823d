"""The metadata database: connection, migrations, tables, conditions and pages."""
