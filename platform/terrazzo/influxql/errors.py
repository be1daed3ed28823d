"""The errors that whoever asks is told of, in InfluxDB's words where it has some."""

from __future__ import annotations


class QueryError(Exception):
    """A statement can't be answered; ``str()`` says why."""


class SyntaxFault(QueryError):
    """A text is no InfluxQL: nothing of it is answered."""
