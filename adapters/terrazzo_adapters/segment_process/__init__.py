"""Segments are made in a process of its own, which loads what makes them and not the store."""
