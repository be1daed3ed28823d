"""The definitions of the entities: tables, columns and the values that they accept."""
