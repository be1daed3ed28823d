"""The ingest: decodes batches of publishes, maps them, commits the records, acknowledges the terminals."""
