"""Where backups are kept: folders, and object storages that speak S3."""

from __future__ import annotations

from terrazzo_adapters.backup.folder import FolderTarget

__all__ = ["FolderTarget"]
