"""Bombs of a company's users: requests, files to import, forms."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from functools import cache
from typing import Any

import aiohttp
from attacks.attack import GATEWAY

from bombs.bomb import Bomb, Send, Site
from terrazzo.api.operations.files import UPLOAD

MIB = 1 << 20
INFLATED = 512 * MIB
IMPORT = "/bulk/terminals?dry_run=1"
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


def _request(role: str, action: str, **fields: Any) -> Send:
    """One whose fields are all there is to it."""
    body = json.dumps({"action": action, **fields}).encode()
    return _body(role, body)


def _body(role: str, body: bytes, path: str = GATEWAY, **headers: str) -> Send:
    async def send(site: Site, _who: str) -> str:
        return await site.post(role, path, body, **headers)

    return send


def _deep(levels: int, value: str = "1") -> bytes:
    """Lists in lists where conditions are expected."""
    nested = "[" * levels + value + "]" * levels
    return f'{{"action": "get_terminal_list", "where_and": {nested}}}'.encode()


@cache
def _inflating(kind: str) -> bytes:
    """Half a gibibyte of blanks, compressed; ``twice``: and once more."""
    packer = zlib.compressobj(9, wbits=15 if kind == "deflate" else 31)
    piece = b" " * MIB
    data = b"".join([*(packer.compress(piece) for _ in range(INFLATED // MIB)), packer.flush()])
    return gzip.compress(data) if kind == "twice" else data


def _inflated(role: str, path: str, kind: str) -> Send:
    async def send(site: Site, _who: str) -> str:
        encoding = "deflate" if kind == "deflate" else "gzip, gzip" if kind == "twice" else "gzip"
        bomb = await asyncio.to_thread(_inflating, kind)
        return await site.post(role, path, bomb, Content_Encoding=encoding)

    return send


def _form(role: str, *, parts: int, name: str = "f", filename: str = "") -> Send:
    async def send(site: Site, _who: str) -> str:
        form = aiohttp.FormData()
        for number in range(parts):
            if filename:
                form.add_field(f"{name}{number}", b"x" * 100, filename=filename)
            else:
                form.add_field(f"{name}{number}", "x")
        return await site.post(role, UPLOAD.path, form)

    return send


def _rows(count: int, cell: str) -> list[list[str]]:
    return [[f"V{number}", "", "", "FUNC", "", cell] for number in range(count)]


def _zip(size: int) -> bytes:
    """What a zip archive begins with, as an XLSX file does, and much that is to be inflated."""
    return b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(16) + zlib.compress(bytes(size))


TAKEN_SO: tuple[str, ...] = ()  # what is not known is passed over, and what has no value has none
_OF_FORMS = ("500 name: ", "500 body: ")  # component paths have codes of their own
_WIDE = {f"k{number}": number for number in range(60_000)}

REQUESTS = (
    Bomb("lists 400,000 deep", "viewer", _body("viewer", _deep(400_000))),
    Bomb("lists 65 deep", "viewer", _body("viewer", _deep(65))),
    Bomb("a number of 900,000 digits", "viewer", _body("viewer", _deep(2, "9" * 900_000))),
    Bomb(
        "40,000 values in where_in", "viewer", _request("viewer", "get_terminal_list", where_in=["uid", ["a"] * 40_000])
    ),
    Bomb("60,000 fields", "viewer", _request("viewer", "get_terminal_list", **_WIDE), TAKEN_SO),
    Bomb(
        "20,000 conditions", "viewer", _request("viewer", "get_terminal_list", where_and=[["uid", "=", "a"]] * 20_000)
    ),
    Bomb("a body beyond 1 MiB", "viewer", _request("viewer", "get_terminal_list", uid="a" * (1 << 20))),
    Bomb(
        "a pattern that goes back and forth",
        "viewer",
        _request("viewer", "get_terminal_list", where_and=[["name", "like", "%a" * 100_000]]),
    ),
    Bomb(
        "a regular expression as an operator",
        "viewer",
        _request("viewer", "get_terminal_list", where_and=[["name", "regexp", "(a+)+$"]]),
    ),
    Bomb(
        "a mapping of 5,000 rows, tried",
        "viewer",
        _request("viewer", "check_mapping", script=_rows(5_000, "1"), terminal_list=["a"], payloads=[]),
    ),
    Bomb(
        "an expression 20,000 deep",
        "viewer",
        _request(
            "viewer",
            "check_mapping",
            script=_rows(1, "(" * 20_000 + "1" + ")" * 20_000),
            terminal_list=["a"],
            payloads=[],
        ),
    ),
    Bomb(
        "powers of powers",
        "viewer",
        _request("viewer", "check_mapping", script=_rows(1, "9**9**9**9**9"), terminal_list=["a"], payloads=[]),
        TAKEN_SO,
    ),
    Bomb(
        "a text times a billion",
        "viewer",
        _request("viewer", "check_mapping", script=_rows(1, "'aaaa' * 1000000000"), terminal_list=["a"], payloads=[]),
    ),
    Bomb(
        "a mapping with an expression 20,000 long",
        "admin",
        _request("admin", "create_mapping", name="m", script=_rows(1, "1+" * 10_000 + "1"), **BY),
    ),
    Bomb(
        "a mapping of 20,000 rows",
        "admin",
        _request("admin", "create_mapping", name="m", script=_rows(20_000, "1"), **BY),
    ),
    Bomb(
        "a dashboard 400 deep",
        "admin",
        _body(
            "admin",
            json.dumps({"action": "create_dashboard", "name": "d", "script": {}, **BY})
            .encode()
            .replace(b'"script": {}', b'"script": ' + b'{"a":' * 400 + b"1" + b"}" * 400),
        ),
    ),
    Bomb(
        "a dashboard of 100,000 widgets",
        "admin",
        _request("admin", "create_dashboard", name="d", script={"widgets": [{}] * 100_000}, **BY),
    ),
    Bomb("an import that inflates to 512 MiB", "admin", _inflated("admin", IMPORT, "gzip")),
    Bomb("the same by deflate", "admin", _inflated("admin", IMPORT, "deflate")),
    Bomb("the same compressed twice", "admin", _inflated("admin", IMPORT, "twice")),
    Bomb("a request that inflates to 512 MiB", "viewer", _inflated("viewer", GATEWAY, "gzip")),
    Bomb("an XLSX file to import", "admin", _body("admin", _zip(8 * MIB), IMPORT)),
    Bomb(
        "CSV of 200,000 columns", "admin", _body("admin", b",".join(b"c%d" % n for n in range(200_000)) + b"\n", IMPORT)
    ),
    Bomb("CSV of a cell of 16 MiB", "admin", _body("admin", b'uid,name\n"' + b"x" * (16 * MIB), IMPORT)),
    Bomb("CSV beyond limits.import_bytes", "admin", _body("admin", b"uid,name\n" + b"a,b\n" * (17 * MIB), IMPORT)),
    Bomb("JSON rows 100,000 deep", "admin", _body("admin", b"[" * 100_000 + b"]" * 100_000, IMPORT)),
    Bomb("a form of 5,000 parts", "admin", _form("admin", parts=5_000), _OF_FORMS),
    Bomb("a form of 300 files", "admin", _form("admin", parts=300, filename="a.png"), _OF_FORMS),
    Bomb("a part's name of 100,000 characters", "admin", _form("admin", parts=1, name="n" * 100_000), _OF_FORMS),
    Bomb(
        "a file's name of 100,000 characters",
        "admin",
        _form("admin", parts=1, filename="n" * 100_000 + ".png"),
        _OF_FORMS,
    ),
)
