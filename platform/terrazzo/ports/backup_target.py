"""The port to where backups are kept: a place of named contents, in a folder or in an object storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

PIECE_BYTES = 1 << 20


class TargetFailed(Exception):
    """The target can't be read or written; ``str()`` names it and says why, and can be shown to an operator."""


class Held(NamedTuple):
    """A content that the target has: its name and size in bytes."""

    name: str
    size: int


class BackupTarget(Protocol):
    """Keeps contents under names such as ``objects/ab/ab12...``. Every method blocks, and may raise ``TargetFailed``.

    A content is there whole or not at all, whatever happens while it is put.
    """

    @property
    def place(self) -> str:
        """Where it is, for people: a path or a URL, without credentials."""

    def held(self, prefix: str) -> Iterator[Held]:
        """The contents whose names begin with ``prefix``, in no order."""

    def put(self, name: str, source: Path) -> None:
        """Keeps a copy of a file, durably; a content of that name is replaced."""

    def put_bytes(self, name: str, content: bytes) -> None:
        """Keeps a content, durably; one of that name is replaced."""

    def pieces(self, name: str) -> Iterator[bytes]:
        """A content in pieces of bounded size.

        Raises:
            KeyError: there is none of that name.
        """

    def delete(self, name: str) -> None:
        """Forgets a content; none of that name is none."""
