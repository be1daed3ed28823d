"""Uploads and downloads: what comes back is what was sent; whatever is refused leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.api_rig import Rig
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.file_kinds import KINDS, check_head, clean_name, kind_of
from terrazzo.errors import BadParameter, NotFound
from waiting import until

UPLOAD = "/object/api/v1/file/upload"

ADMIN = Actor(user_id=1, username="admin", company_id=1, role=Role.ADMIN)
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 64


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


async def send(
    rig: Rig, content: bytes, name: str = "manual.pdf", who: str = "operator", **query: str
) -> tuple[int, dict[str, Any]]:
    form = aiohttp.FormData()
    form.add_field("file", BytesIO(content), filename=name, content_type="application/x-whatever")
    async with rig.http.post(UPLOAD, data=form, params=query, headers=bearer(rig, who)) as response:
        return response.status, await response.json()


async def upload(rig: Rig, content: bytes = PDF, name: str = "manual.pdf", who: str = "operator") -> dict[str, Any]:
    status, answer = await send(rig, content, name, who)
    assert (status, answer["code"]) == (200, 200), answer
    return dict(answer["result"])


def bearer(rig: Rig, who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {rig.tokens[who]}"} if who in rig.tokens else {}


async def fetch(rig: Rig, url: str, who: str = "viewer", **headers: str) -> tuple[int, bytes, Any]:
    async with rig.http.get(url, headers={**bearer(rig, who), **headers}) as response:
        return response.status, await response.read(), response.headers


def folder_of(rig: Rig) -> Path:
    return rig.platform.config.data_dir


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "files").glob("*"))


async def test_a_file_comes_back_as_it_was_sent(rig: Rig, tmp_path: Path) -> None:
    found = await upload(rig)
    assert found == {
        "name": "manual.pdf",
        "uid": found["uid"],
        "url": f"/object/api/v1/file/download/{found['uid']}",
        "type": "application/pdf",
        "size": len(PDF),
        "sha256": hashlib.sha256(PDF).hexdigest(),
    }
    status, content, headers = await fetch(rig, found["url"])
    assert (status, content) == (200, PDF)
    assert headers["Content-Type"] == "application/pdf"
    assert headers["Content-Length"] == str(len(PDF))
    assert headers["Content-Disposition"].startswith('inline; filename="manual.pdf"')
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert [path.name for path in kept(tmp_path)] == [found["uid"]]
    assert kept(tmp_path)[0].stat().st_mode & 0o077 == 0


@IN_MODULE
async def test_a_body_without_a_form_is_the_file_itself(shared_rig: Rig) -> None:
    async with shared_rig.http.post(
        UPLOAD, params={"name": "f.bin"}, data=b"\0\1", headers=bearer(shared_rig, "operator")
    ) as got:
        answer = await got.json()
    assert (answer["code"], answer["result"]["size"], answer["result"]["name"]) == (200, 2, "f.bin")
    async with shared_rig.http.post(UPLOAD, data=b"\0\1", headers=bearer(shared_rig, "operator")) as got:
        answer = await got.json()
    assert (answer["code"], answer["info"].split(":")[0]) == (500, "name")


@IN_MODULE
@pytest.mark.parametrize(
    ("asked", "wanted", "said"),
    [
        ("bytes=0-3", PDF[:4], f"bytes 0-3/{len(PDF)}"),
        ("bytes=5-", PDF[5:], f"bytes 5-{len(PDF) - 1}/{len(PDF)}"),
        ("bytes=-7", PDF[-7:], f"bytes {len(PDF) - 7}-{len(PDF) - 1}/{len(PDF)}"),
    ],
)
async def test_ranges(shared_rig: Rig, asked: str, wanted: bytes, said: str) -> None:
    found = await upload(shared_rig)
    status, content, headers = await fetch(shared_rig, found["url"], Range=asked)
    assert (status, content, headers["Content-Range"]) == (206, wanted, said)


PARTS = {"whole": {}, "part": {"Range": "bytes=2-4"}, "none": {"Range": "bytes=999999-"}}


@IN_MODULE
@pytest.mark.parametrize("headers", PARTS.values(), ids=PARTS)
async def test_the_connection_goes_on_after_a_download(shared_rig: Rig, headers: dict[str, str]) -> None:
    opened = []

    async def count(*_: object) -> None:
        opened.append(1)

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(count)
    url = (await upload(shared_rig))["url"]
    async with aiohttp.ClientSession(shared_rig.addresses.http, trace_configs=[trace]) as session:
        for _ in range(3):
            async with session.get(url, headers={**bearer(shared_rig, "viewer"), **headers}) as response:
                await response.read()
    assert len(opened) == 1


@IN_MODULE
async def test_a_range_past_the_end_and_a_known_file(shared_rig: Rig) -> None:
    found = await upload(shared_rig)
    assert (await fetch(shared_rig, found["url"], Range=f"bytes={len(PDF)}-"))[0] == 416
    _, _, headers = await fetch(shared_rig, found["url"])
    status, content, _ = await fetch(shared_rig, found["url"], **{"If-None-Match": headers["ETag"]})
    assert (status, content) == (304, b"")
    async with shared_rig.http.head(found["url"], headers=bearer(shared_rig, "viewer")) as response:
        assert (response.status, response.headers["Content-Length"]) == (200, str(len(PDF)))


@IN_MODULE
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("page.html", b"<script>", ".html is not among the types"),
        ("drawing.svg", b"<svg/>", ".svg is not among the types"),
        ("run", b"#!/bin/sh", "a name without an ending is not among the types"),
        ("manual.pdf", b"MZ\x90\0", "is not application/pdf"),
        ("picture.png", PDF, "is not image/png"),
        ("notes.txt", b"a\0b", "is not text"),
        ("manual.pdf", b"", "file: is empty"),
    ],
)
async def test_wrong_types_leave_nothing(shared_rig: Rig, name: str, content: bytes, reason: str) -> None:
    before = kept(folder_of(shared_rig))
    status, answer = await send(shared_rig, content, name)
    assert (status, answer["code"], answer["result"]) == (200, 500, {})
    assert reason in answer["info"]
    assert kept(folder_of(shared_rig)) == before


async def test_one_byte_too_many_leaves_nothing(rig: Rig, tmp_path: Path) -> None:
    most = rig.services.limits.file_bytes
    assert (await upload(rig, b"x" * most, "whole.bin"))["size"] == most
    for content in (b"x" * (most + 1), b"x" * (most + 200_000)):
        status, answer = await send(rig, content, "long.bin")
        assert (status, answer["code"], answer["info"]) == (
            413,
            500,
            f"file: longer than {most} bytes (limits.file_bytes)",
        )
    assert len(kept(tmp_path)) == 1


async def test_an_upload_that_breaks_off_leaves_nothing(rig: Rig, tmp_path: Path) -> None:
    async def half() -> Any:
        yield b"x" * 100_000
        await until(lambda: kept(tmp_path), "a file is begun")
        raise ConnectionResetError

    with pytest.raises((aiohttp.ClientError, ConnectionResetError)):
        await rig.http.post(UPLOAD, params={"name": "f.bin"}, data=half(), headers=bearer(rig, "operator"))
    await until(lambda: not kept(tmp_path), "nothing is left")


@IN_MODULE
@pytest.mark.parametrize(
    "body", [b"--x\r\nno form", b"", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--"]
)
async def test_a_form_without_a_file_is_refused(shared_rig: Rig, body: bytes) -> None:
    before = kept(folder_of(shared_rig))
    headers = {**bearer(shared_rig, "operator"), "Content-Type": "multipart/form-data; boundary=x"}
    async with shared_rig.http.post(UPLOAD, data=body, headers=headers) as response:
        answer = await response.json()
    assert (answer["code"], answer["info"].split(":")[0] in ("body", "file")) == (500, True), answer
    assert kept(folder_of(shared_rig)) == before


@IN_MODULE
@pytest.mark.parametrize(
    "uid",
    ["../terrazzo.db", "..%2Fterrazzo.db", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a" * 32, "nothing", "%00", "x" * 200],
)
async def test_no_path_leads_out_of_the_folder(shared_rig: Rig, uid: str) -> None:
    from yarl import URL

    url = URL(f"/object/api/v1/file/download/{uid}", encoded=True)
    async with shared_rig.http.get(url, headers=bearer(shared_rig, "admin")) as response:
        answer = await response.json()
    assert answer["code"] in (500, 10401), answer
    assert answer["result"] == {}


async def test_another_company_sees_no_file(rig: Rig, tmp_path: Path) -> None:
    found = await upload(rig)
    for who, code in (("stranger", 500), ("nobody", 10402)):
        _, content, headers = await fetch(rig, found["url"], who)
        assert headers["Content-Type"].startswith("application/json")
        assert f'"code":{code}'.encode() in content
    async with rig.http.post(
        "/object/api/v1/file/discard", json={"uid": found["uid"]}, headers=bearer(rig, "stranger")
    ) as response:
        assert (await response.json())["code"] == 500
    assert len(kept(tmp_path)) == 1
    assert (await send(rig, PDF, who="viewer"))[1]["code"] == 10403
    assert (await send(rig, PDF, who="nobody"))[1]["code"] == 10402
    assert len(kept(tmp_path)) == 1


async def test_a_file_that_a_record_names_stays(rig: Rig, tmp_path: Path) -> None:
    found = await upload(rig)
    headers = bearer(rig, "admin")
    listed = [{"name": found["name"], "url": found["url"], "uid": found["uid"]}]
    await rig.services.entities.files.create(ADMIN, {"name": "manuals", "file": listed})
    async with rig.http.post("/object/api/v1/file/discard", json={"uid": found["uid"]}, headers=headers) as response:
        assert "in use by file 1" in (await response.json())["info"]
    await rig.services.entities.files.delete(ADMIN, 1)
    async with rig.http.post("/object/api/v1/file/discard", json={"uid": found["url"]}, headers=headers) as response:
        assert await response.json() == {"code": 200, "msg": "success", "info": ""}
    assert kept(tmp_path) == []
    assert (await fetch(rig, found["url"]))[2]["Content-Type"].startswith("application/json")


async def test_orphans_go_and_files_stay(rig: Rig, tmp_path: Path) -> None:
    found = await upload(rig)
    folder, old = tmp_path / "files", time.time() - 7_200
    for name in ("0" * 32, f"{'1' * 32}.part", f"{'2' * 32}.part", "readme"):
        (folder / name).write_bytes(b"x")
    for name in (found["uid"], "0" * 32, f"{'1' * 32}.part", "readme"):
        os.utime(folder / name, (old, old))
    assert await rig.services.files.remove_orphans() == 2  # type: ignore[attr-defined]
    assert {path.name for path in kept(tmp_path)} == {found["uid"], f"{'2' * 32}.part", "readme"}


@IN_MODULE
async def test_a_company_opens_its_own_files_only(shared_rig: Rig) -> None:
    found = await upload(shared_rig)
    library: Any = shared_rig.services.files
    stored = await library.open(1, found["uid"])
    assert (stored.path.read_bytes(), stored.size, stored.etag) == (PDF, len(PDF), found["sha256"])
    for company, uid in ((2, found["uid"]), (1, "../x"), (1, "")):
        with pytest.raises(NotFound):
            await library.open(company, uid)


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """A process of its own may write no file of more than 64 KiB: what a full disk answers, it gets half-way."""
    program = """
import asyncio, resource, signal, sys
from pathlib import Path
from terrazzo.errors import Unavailable
from terrazzo.files.folder import FileFolder

async def pieces():
    for _ in range(64):
        yield b"x" * 65536

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    folder = FileFolder(Path(sys.argv[1]), most_bytes=1 << 30)
    try:
        await folder.write(pieces(), lambda head: None)
    except Unavailable as error:
        print(error)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "files")], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.strip() == "file: no space is left on the platform's disk; nothing was kept", done.stderr
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("a.pdf", "a.pdf"),
        ("../../etc/a.pdf", "a.pdf"),
        ("C:\\x\\a b.pdf", "a b.pdf"),
        (".htaccess.txt", "htaccess.txt"),
        ("说明书\r\n.pdf", "说明书.pdf"),
        ("a\0.pdf", "a.pdf"),
        ("x" * 124 + ".pdf", "x" * 124 + ".pdf"),
    ],
)
def test_names(given: str, name: str) -> None:
    assert clean_name(given) == name


@pytest.mark.parametrize("given", ["", "..", "/", "a/", " . ", "\0", "x" * 129])
def test_no_names(given: str) -> None:
    with pytest.raises(BadParameter, match="name"):
        clean_name(given)


def test_each_kind_takes_what_it_is_and_nothing_else() -> None:
    for ending, kind in KINDS.items():
        good = b"\0" * kind.at + (kind.begins[0] if kind.begins else b"text") + b"..."
        check_head(kind_of(f"a.{ending.upper()}", KINDS), "a", good)
        if kind.begins or kind.is_text:
            with pytest.raises(BadParameter):
                check_head(kind, "a", b"\0\1\2\3")
