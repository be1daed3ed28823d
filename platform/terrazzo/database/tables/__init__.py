"""Table definitions of records that aren't entities: journals, logs, results and links."""
