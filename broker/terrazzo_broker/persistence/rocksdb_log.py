"""RocksDB's options for a database that Python writes to: nothing that can wait for the disk happens in ``write``.

rocksdict holds the interpreter's lock inside ``Rdict.write``, but not inside ``Rdict.flush_wal``. A disk that is busy,
or a system that has too many unwritten pages, lets even an unsynced write to the log wait, and with it every thread of
the process: seconds were seen. So a write stays in the log's buffer, and ``flush_wal`` takes it from there.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from rocksdict import Options, WriteOptions

# ``manual_wal_flush`` has no setter in rocksdict; what RocksDB keeps in its own files can be loaded.
_OPTIONS = """\
[Version]
  rocksdb_version=9.0.0
  options_file_version=1.1
[DBOptions]
  manual_wal_flush=true
[CFOptions "default"]
"""
_RAW_MODE = '{"raw_mode":true,"prefix_extractors":{}}'


def log_options() -> Options:
    """Options of a database of bytes whose writes reach its log with ``flush_wal``, and only then outlive the process.

    All others have RocksDB's defaults.
    """
    with TemporaryDirectory(prefix="rocksdb-options-") as folder:
        Path(folder, "OPTIONS-000001").write_text(_OPTIONS)
        Path(folder, "rocksdict-config.json").write_text(_RAW_MODE)
        options, _ = Options.load_latest(folder)
    return options


def write_options() -> WriteOptions:
    """Options of each write: not synced; a stall (too many unmerged files) is refused instead of sat out."""
    options = WriteOptions()
    options.sync = False
    options.no_slowdown = True
    return options
