"""Answers with many records: how they are made, encoded, counted and remembered."""
