"""The interface description and the documents, made from the table of operations."""
