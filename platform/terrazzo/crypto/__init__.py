"""Keys, password hashes and secrets at rest."""
