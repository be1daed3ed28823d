"""Serves an ``unsynced_disk`` by FUSE (Linux; libfuse3 and mfusepy; root).

``python unsynced_server.py MOUNT BACKING FOLDER heeds``: the disk has what is in FOLDER, synced, and heeds syncs.
Setting the attribute ``user.power`` of MOUNT to ``drop SEED TARGET`` or ``some SEED TARGET`` writes into TARGET what a
failure of the power at this moment would leave, and leaves everything running.

``user.full`` ``1``: there is no room for anything more, until it is ``0``. ``user.slow`` ``100``: a write takes 100
times as long as it does, and so does a sync, of at least a millisecond; whoever else asks waits meanwhile, as for a
disk with one queue.
"""

from __future__ import annotations

import errno
import os
import random
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mfusepy
from unsynced_disk import Disk, Inode

HEEDS = "heeds"
_BLOCK = 4096
_SYNC_S = 0.001  # what one takes a solid-state disk


class Served(mfusepy.Operations):  # type: ignore[misc]
    """What the kernel asks; handles of files are numbers of inodes."""

    use_ns = True

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._is_full = False
        self._times_slower = 1

    def _need_room(self) -> None:
        if self._is_full:
            raise mfusepy.FuseOSError(errno.ENOSPC)

    @contextmanager
    def _slowed(self, least_s: float = 0.0) -> Iterator[None]:
        began_s = time.monotonic()
        yield
        if self._times_slower > 1:
            took_s = time.monotonic() - began_s
            time.sleep(max(took_s, least_s) * self._times_slower - took_s)

    def _inode(self, path: str | None, handle: int | None = None) -> Inode:
        return self.disk.inode(handle) if handle else self.disk.find(path or "/")

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        inode = self._inode(path, fh)
        time_ns = int(inode.changed_s * 1e9)
        times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), time_ns)
        blocks = (inode.size + 511) // 512
        return {"st_mode": inode.mode, "st_nlink": 1, "st_size": inode.size, "st_blocks": blocks, **times}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *self.disk.find(path).names]

    def mkdir(self, path: str, mode: int) -> int:
        self._need_room()
        self.disk.make(path, stat.S_IFDIR | mode)
        return 0

    def mknod(self, path: str, mode: int, dev: int) -> int:
        self._need_room()
        self.disk.make(path, mode)
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._need_room()
        inode = self.disk.make(path, stat.S_IFREG | stat.S_IMODE(mode))
        inode.opened += 1
        return inode.number

    def open(self, path: str, flags: int) -> int:
        inode = self.disk.find(path)
        inode.opened += 1
        if flags & os.O_TRUNC:
            self.disk.truncate(inode, 0)
        return inode.number

    def release(self, path: str, fh: int) -> int:
        self.disk.release(self.disk.inode(fh))
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(self.disk.inode(fh).descriptor, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        inode = self.disk.inode(fh)
        if offset + len(data) > inode.size:  # what is there may be written over
            self._need_room()
        with self._slowed():
            return self.disk.write(inode, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self.disk.truncate(self._inode(path, fh), length)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        with self._slowed(_SYNC_S):
            self.disk.sync_file(self.disk.inode(fh))
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        with self._slowed(_SYNC_S):
            self.disk.sync_folder(self.disk.find(path))
        return 0

    def link(self, target: str, source: str) -> int:
        self.disk.link(target, self.disk.find(source))
        return 0

    def unlink(self, path: str) -> int:
        self.disk.remove(path)
        return 0

    def rmdir(self, path: str) -> int:
        self.disk.remove(path)
        return 0

    def rename(self, old: str, new: str) -> int:
        self.disk.rename(old, new)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        inode = self.disk.find(path)
        inode.mode = stat.S_IFMT(inode.mode) | stat.S_IMODE(mode)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        blocks = 1 << 22
        free = 0 if self._is_full else blocks
        sizes = {"f_blocks": blocks, "f_bfree": free, "f_bavail": free}
        files = dict.fromkeys(("f_files", "f_ffree", "f_favail"), blocks)
        return {"f_bsize": _BLOCK, "f_frsize": _BLOCK, "f_namemax": 255, **sizes, **files}

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        match name:
            case "user.power":
                how, seed, target = value.decode().split(" ", 2)
                self.disk.after_power_failure(Path(target), random.Random(seed), some=how == "some")
            case "user.full":
                self._is_full = value == b"1"
            case "user.slow":
                self._times_slower = int(value)
            case _:
                raise mfusepy.FuseOSError(errno.ENOTSUP)
        return 0


def main() -> None:
    """Serves until it is unmounted or told to end."""
    mount, backing, folder, heeds = sys.argv[1:]
    disk = Disk(Path(backing), heeds_syncs=heeds == HEEDS)
    disk.take_in(Path(folder))
    mfusepy.FUSE(Served(disk), mount, foreground=True, nothreads=True, hard_remove=True, fsname="unsynced")


if __name__ == "__main__":
    main()
