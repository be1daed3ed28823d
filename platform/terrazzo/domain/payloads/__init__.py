"""Payloads that are no objects of points, and how a terminal's configuration says that they are read."""
