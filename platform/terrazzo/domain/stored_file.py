"""An uploaded file that can be read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from terrazzo.domain.file_kinds import KINDS, FileKind


class StoredFile(NamedTuple):
    """One file that can be read."""

    path: Path
    size: int
    etag: str  # its SHA-256, in hex and without quotes
    name: str
    media_type: str

    @property
    def is_inline(self) -> bool:
        """Whether a browser may show it in place."""
        kind: FileKind | None = KINDS.get(self.name.rpartition(".")[2].lower())
        return kind is not None and kind.is_inline
