"""The broker's state on disk: what a restart finds again."""

from .disk_storage import DiskStorage

__all__ = ["DiskStorage"]
