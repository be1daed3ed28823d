"""Uploaded files: the folder with their contents, and the library that also keeps their records."""
