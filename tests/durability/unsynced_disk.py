"""A disk that knows what was synced: what would be there after the power has failed now.

As strict as POSIX lets a file system be: a file has the content of its last ``fsync``; a name, a rename, a removal is
there when the folder was synced. With ``some``, part of the rest has arrived as well: the first changes of names, in
their order, and any sectors of what was written to files, in none. What a power failure leaves has no sockets.
"""

from __future__ import annotations

import errno
import os
import random
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = 1
_PAGE, _SECTOR = 4096, 512
Change = tuple[int, str, int | None]
"""In a folder, a name is of this inode from now on, or of none."""


@dataclass
class Inode:
    """A file or folder. ``descriptor`` is of what running programs see; ``unsynced``: pages since the last sync."""

    number: int
    mode: int
    names: dict[str, int] = field(default_factory=dict)  # of a folder
    descriptor: int = -1
    links: int = 0
    opened: int = 0
    unsynced: set[int] = field(default_factory=set)
    changed_s: float = field(default_factory=time.time)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size if self.descriptor >= 0 else 0


class Disk:
    """Its content is in files of ``backing``, by inode: ``live`` as programs see it, ``synced`` as the disk has it."""

    def __init__(self, backing: Path, *, heeds_syncs: bool = True) -> None:
        """``heeds_syncs`` False: a disk that says that it has synced, and hasn't."""
        self._heeds_syncs = heeds_syncs
        self._live, self._synced = backing / "live", backing / "synced"
        for folder in (self._live, self._synced):
            folder.mkdir(parents=True)
        self._inodes = {ROOT: Inode(ROOT, stat.S_IFDIR | 0o755, links=1)}
        self._synced_names: dict[int, dict[str, int]] = {ROOT: {}}
        self._pending: list[list[Change]] = []  # each list is one change of names, whole or not there
        self._last = ROOT

    # Names

    def find(self, path: str) -> Inode:
        """By its path from the root."""
        inode = self._inodes[ROOT]
        for name in path.strip("/").split("/"):
            if name:
                if not inode.is_folder:
                    raise OSError(errno.ENOTDIR, path)
                if name not in inode.names:
                    raise OSError(errno.ENOENT, path)
                inode = self._inodes[inode.names[name]]
        return inode

    def inode(self, number: int) -> Inode:
        """By its number, which is a file's handle too."""
        return self._inodes[number]

    def make(self, path: str, mode: int) -> Inode:
        """A new file, folder or socket."""
        self._last += 1
        inode = self._inodes[self._last] = Inode(self._last, mode)
        if inode.is_folder:
            self._synced_names[inode.number] = {}
        elif stat.S_ISREG(mode):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            inode.descriptor = os.open(self._live / str(inode.number), flags, 0o600)
        self._change((path, inode.number))
        return inode

    def link(self, path: str, inode: Inode) -> None:
        """Another name of a file."""
        self._change((path, inode.number))

    def remove(self, path: str) -> None:
        """A name of a file, or an empty folder."""
        if self.find(path).names:
            raise OSError(errno.ENOTEMPTY, path)
        self._change((path, None))

    def rename(self, old: str, new: str) -> None:
        """Both names change at once."""
        self._change((new, self.find(old).number), (old, None))

    def _change(self, *changes: tuple[str, int | None]) -> None:
        told: list[Change] = []
        for path, number in changes:
            above, _, name = path.rpartition("/")
            folder = self.find(above)
            before = folder.names.pop(name, None)
            if number is not None:
                folder.names[name] = number
                self._inodes[number].links += 1
            if before is not None:
                self._inodes[before].links -= 1
                self._forget(self._inodes[before])
            told.append((folder.number, name, number))
        self._pending.append(told)

    # Contents

    def write(self, inode: Inode, data: bytes, offset: int) -> int:
        """Into what programs see."""
        before = inode.size
        count = os.pwrite(inode.descriptor, data, offset)
        first = min(before, offset)  # what lies between the old end and this is zeros now
        inode.unsynced.update(range(first // _PAGE, (offset + count + _PAGE - 1) // _PAGE))
        inode.changed_s = time.time()
        return count

    def truncate(self, inode: Inode, size: int) -> None:
        """To this size, in what programs see."""
        first = min(inode.size, size)
        os.ftruncate(inode.descriptor, size)
        inode.unsynced.update(range(first // _PAGE, (size + _PAGE - 1) // _PAGE))
        inode.changed_s = time.time()

    def release(self, inode: Inode) -> None:
        """One that had it open has closed it."""
        inode.opened -= 1
        self._forget(inode)

    def _forget(self, inode: Inode) -> None:
        """What nobody can read any more; what the disk has of it stays, as its name may be there after a failure."""
        if inode.links + inode.opened == 0 and inode.descriptor >= 0:
            os.close(inode.descriptor)
            inode.descriptor = -1
            (self._live / str(inode.number)).unlink()
            inode.unsynced.clear()

    # What is synced

    def sync_file(self, inode: Inode) -> None:
        """The disk has its content, not its name."""
        if self._heeds_syncs:
            self._store(inode)

    def _store(self, inode: Inode) -> None:
        with (self._synced / str(inode.number)).open("ab") as whole:
            synced = os.open(whole.name, os.O_RDWR)
        try:
            for page in sorted(inode.unsynced):
                os.pwrite(synced, os.pread(inode.descriptor, _PAGE, page * _PAGE), page * _PAGE)
            os.ftruncate(synced, inode.size)
        finally:
            os.close(synced)
        inode.unsynced.clear()

    def sync_folder(self, inode: Inode) -> None:
        """The disk has all changes of names that touch it."""
        if self._heeds_syncs:
            self._store_names(inode)

    def _store_names(self, inode: Inode) -> None:
        kept = []
        for changes in self._pending:
            if any(number == inode.number for number, _, _ in changes):
                _apply(self._synced_names, changes)
            else:
                kept.append(changes)
        self._pending = kept

    def take_in(self, folder: Path) -> None:
        """Copies a folder here; all of it is synced."""
        for path in sorted(folder.rglob("*")):
            name = f"/{path.relative_to(folder)}"
            inode = self.make(name, path.lstat().st_mode)
            if inode.descriptor >= 0:
                self.write(inode, path.read_bytes(), 0)
                self._store(inode)
        for inode in self._inodes.values():
            self._store_names(inode)

    # The power fails

    def after_power_failure(self, target: Path, chance: random.Random, *, some: bool) -> None:
        """Writes into ``target``, a new folder, what the disk would have."""
        names = {number: dict(each) for number, each in self._synced_names.items()}
        if some:
            for changes in self._pending[: chance.randint(0, len(self._pending))]:
                _apply(names, changes)
        self._write_folder(ROOT, target, names, chance if some else None)

    def _write_folder(
        self, number: int, target: Path, names: dict[int, dict[str, int]], chance: random.Random | None
    ) -> None:
        target.mkdir()
        target.chmod(stat.S_IMODE(self._inodes[number].mode))
        for name, each in names[number].items():
            inode = self._inodes[each]
            if inode.is_folder:
                self._write_folder(each, target / name, names, chance)
            elif stat.S_ISREG(inode.mode):
                self._write_file(inode, target / name, chance)

    def _write_file(self, inode: Inode, target: Path, chance: random.Random | None) -> None:
        synced = self._synced / str(inode.number)
        content = bytearray(synced.read_bytes() if synced.exists() else b"")
        if chance is not None and inode.descriptor >= 0:
            for page in sorted(inode.unsynced):
                if chance.random() < 0.5:
                    data = os.pread(inode.descriptor, _PAGE, page * _PAGE)
                    data = data[: _SECTOR * chance.randint(1, _PAGE // _SECTOR)]
                    content.extend(bytes(max(0, page * _PAGE + len(data) - len(content))))
                    content[page * _PAGE : page * _PAGE + len(data)] = data
        target.write_bytes(content)
        target.chmod(stat.S_IMODE(inode.mode))


def _apply(names: dict[int, dict[str, int]], changes: list[Change]) -> None:
    for folder, name, number in changes:
        if number is None:
            names[folder].pop(name, None)
        else:
            names[folder][name] = number
