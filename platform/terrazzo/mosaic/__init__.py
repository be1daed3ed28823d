"""Mosaic records: reading their bodies, and what charts and files make of them. Without I/O."""
