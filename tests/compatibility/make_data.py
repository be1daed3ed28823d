"""Makes a data folder as users do and keeps it, with what the platform answers: for test_compatibility_data.py.

    python tests/compatibility/make_data.py NAME [PYTHON]

``PYTHON`` is an interpreter that has the version to keep (this one unless given). Makes ``data/NAME.tar.xz``, the
folder as the stopped platform left it, and ``data/NAME.json``, the questions with their answers.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from data_questions import ask_all, questions
from data_records import USERS, Records
from data_server import Server
from data_traffic import Traffic

KEPT = Path(__file__).with_name("data")
_OF_ROCKSDB_ALONE = ("LOG", "LOCK")
"""RocksDB's own log and lock, which it makes anew."""
LARGEST_BYTES = 1_000_000


def make(name: str, python: Path) -> None:
    """Makes both files; fails where the same version, started again on the folder, answers differently."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with Server(python, data) as server:
            kept = _fill(server)
        pack(data, KEPT / f"{name}.tar.xz")
        _check(Path(folder), KEPT / f"{name}.tar.xz", kept, python)
    (KEPT / f"{name}.json").write_text(_as_lines(kept), encoding="utf-8")
    print(f"{len(kept['asked'])} questions, {(KEPT / f'{name}.tar.xz').stat().st_size} bytes")


def _as_lines(kept: dict[str, Any]) -> str:
    """JSON with a line for each question and its answer, so that a difference is one."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, sort_keys=True) for each in kept["asked"])
    return f'{{"uids": {json.dumps(kept["uids"], sort_keys=True)},\n"asked": [\n{lines}\n]}}\n'


def _fill(server: Server) -> dict[str, Any]:
    admin = server.api()
    records = Records(admin)
    records.create()
    Traffic(server, admin, records).run()
    asked = questions(records.uids, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 1)))
    answered = zip(asked, settled(server, asked), strict=True)
    return {"uids": records.uids, "asked": [{"question": one, "answer": answer} for one, answer in answered]}


def settled(server: Server, asked: list[Any]) -> list[Any]:
    """The answers once they have been the same for five seconds."""
    before: list[Any] = []
    while True:
        found = ask_all(asked, lambda who: server.api(who, USERS[who]))
        if found == before:
            return found
        before = found
        time.sleep(5)  # what has nothing to wait for: results that are computed when nobody asks


def pack(data: Path, archive: Path) -> None:
    """Packs a folder without what the platform makes again."""
    archive.parent.mkdir(exist_ok=True)
    with tarfile.open(archive, "w:xz") as tar:
        for path in sorted(data.rglob("*")):
            if path.name.split(".")[0] not in _OF_ROCKSDB_ALONE:
                tar.add(path, str(path.relative_to(data)), recursive=False, filter=_anonymous)
    size = archive.stat().st_size
    assert size < LARGEST_BYTES, f"{size} bytes are too many for the repository"


def unpack(archive: Path, data: Path) -> Path:
    """Unpacks a kept folder; the folder."""
    data.mkdir(mode=0o700, parents=True)
    with tarfile.open(archive) as tar:
        tar.extractall(data, filter="data")
    return data


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _check(folder: Path, archive: Path, kept: dict[str, Any], python: Path) -> None:
    with Server(python, unpack(archive, folder / "again")) as server:
        found = settled(server, [each["question"] for each in kept["asked"]])
    differing = [(each, now) for each, now in zip(kept["asked"], found, strict=True) if each["answer"] != now]
    for each, now in differing:
        print(json.dumps(each["question"]), each["answer"], now, sep="\n", file=sys.stderr)
    assert not differing, f"{len(differing)} answers differ after a restart"


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2] if sys.argv[2:] else sys.executable))
