"""The broker's storage on disk: sessions, retained messages and wills outlive a restart."""

from .disk_storage import DiskStorage

__all__ = ["DiskStorage"]
