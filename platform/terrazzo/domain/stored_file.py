"""``StoredFile``: an uploaded file that can be served."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from terrazzo.domain.file_kinds import KINDS, FileKind


class StoredFile(NamedTuple):
    """An uploaded file: its path on disk, size in bytes, and what its HTTP answer says of it."""

    path: Path
    size: int
    etag: str  # its SHA-256, in hex and without quotes
    name: str
    media_type: str

    @property
    def is_inline(self) -> bool:
        """Whether a browser may show it inside a page (Content-Disposition ``inline``)."""
        kind: FileKind | None = KINDS.get(self.name.rpartition(".")[2].lower())
        return kind is not None and kind.is_inline
