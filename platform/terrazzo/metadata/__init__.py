"""The registry on disk: tables, migrations, repositories, secrets at rest."""
