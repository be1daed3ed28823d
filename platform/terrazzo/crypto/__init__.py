"""Keys in files, password hashes, and secrets sealed at rest."""
