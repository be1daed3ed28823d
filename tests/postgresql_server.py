"""A PostgreSQL server of a test run's own, and empty databases in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from migrated import migrate
from running import Platform
from support import free_port, require_program
from terrazzo.database.database import Database

_TEMPLATE = "migrated"
_HASTY = {"fsync": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": 0, "autovacuum": "off"}
"""What only a power failure or a replica would miss; whoever kills the server finds all that was committed."""


class PostgreSQL:
    """A server on loopback that everybody may log in to; it forgets all when it ends."""

    def __init__(self, programs: Path, folder: Path, account: dict[str, Any]) -> None:
        self._programs = programs
        self._folder = folder
        self._account = account
        self._port = free_port()
        self._made = 0
        self._has_template = False

    def create(self) -> None:
        """Makes the folder of the databases."""
        options = ["-U", "terrazzo", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._run("initdb", "-D", self._data, *options)

    def start(self) -> None:
        """Returns when it takes connections."""
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": self._folder, **_HASTY}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._run("pg_ctl", *self._control, "-o", f"-p {self._port} {options}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Ends its connections and itself; ``immediate`` as in a crash."""
        self._run("pg_ctl", *self._control, "-m", mode, "stop")

    def kill(self) -> None:
        """``kill -9`` of the server; what it has begun ends when it notices. ``start`` goes on with its files."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Sends a signal to the server, and to what it has begun unless that ends by itself."""
        server = self.pid
        begun = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for pid in (server, *(() if number == signal.SIGKILL else map(int, begun))):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def pid(self) -> int:
        """Of the process that has begun all others of the server."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def database(self, *, template: str = "template1") -> str:
        """The address of a new database, an empty one unless it is a copy, as in ``database.url``."""
        self._made += 1
        name = f"t{self._made}"
        self.psql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self._address(name)

    def migrated_database(self) -> str:
        """The address of a new database with all tables, which is there sooner than migrations are done."""
        if not self._has_template:
            self.psql(f"CREATE DATABASE {_TEMPLATE}")
            # tests have loops of their own, which wait meanwhile
            maker = threading.Thread(target=lambda: asyncio.run(migrate(self._address(_TEMPLATE), self._folder)))
            maker.start()
            maker.join()
            self._has_template = True
        return self.database(template=_TEMPLATE)

    def psql(self, statement: str, *, url: str = "") -> str:
        """What a statement of an administrator answers, a line a row."""
        return self._run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, url or self._address("postgres"))

    def _address(self, name: str) -> str:
        return f"postgresql://terrazzo@127.0.0.1:{self._port}/{name}"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _control(self) -> tuple[str | Path, ...]:
        return ("-D", self._data, "-w", "-s", "-l", self._folder / "log")

    def _run(self, program: str, *arguments: str | Path) -> str:
        command = [self._programs / program, *arguments]
        # to files, not pipes: the server keeps what it inherits
        with tempfile.TemporaryFile() as said:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self._folder, **self._account
            )
            said.seek(0)
            text = said.read().decode().strip()
        assert ended.returncode == 0, f"{program}: {text}"
        return text


@contextmanager
def metadata_in(server: PostgreSQL) -> Iterator[None]:
    """Meanwhile the metadata of each data folder are in a database of the server, where no other is named."""
    urls: dict[Path, str] = {}
    open_named = Database.open

    def database_of(data: Path) -> str:
        if data not in urls:
            urls[data] = server.migrated_database()
        return urls[data]

    async def open_there(url: str, *, data_dir: Path, **options: Any) -> Database:
        return await open_named(url or database_of(data_dir), data_dir=data_dir, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Platform, "database_of", staticmethod(database_of))
        patch.setattr(Database, "open", open_there)
        yield


@contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """A started server; skips where PostgreSQL is not installed, fails where CI promises it."""
    programs = Path(require_program("postgres")).resolve().parent
    # PostgreSQL refuses to run as root
    account: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="terrazzo-postgresql-"))
    if account:
        shutil.chown(folder, "postgres", "postgres")
    server = PostgreSQL(programs, folder, account)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")  # nobody needs it again
    finally:
        shutil.rmtree(folder)
