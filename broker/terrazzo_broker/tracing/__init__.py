"""Shows what passes at a connection, while somebody looks."""
