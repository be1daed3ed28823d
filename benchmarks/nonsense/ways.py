"""The entries of a platform, and a round of random content for each."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from attacks.attack import GATEWAY

from mqtt_bytes import frame, login
from nonsense.packets import Packets
from nonsense.site import LARGE, POINTS, TERMINALS, Site, read_for
from terrazzo.api.operations.bulk import BULK
from terrazzo.api.operations.files import DOWNLOAD, UPLOAD
from terrazzo.api.operations.history.export import EXPORTS
from terrazzo.api.paths.table import PATHS

Way = Callable[[Site], Awaitable[None]]
QUIET_S = 0.3  # after which nothing more is waited for
_UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n"
)


async def _exchange(site: Site, port: str, *pieces: bytes) -> bytes:
    """Sends pieces on a connection of its own, and ends it in one of the ways in which peers do."""
    reader, writer = await site.connect(port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01 * site.values.chance(0.2))
        return await read_for(reader, QUIET_S)
    finally:
        if site.values.chance(0.5):
            writer.transport.abort()
        writer.close()


def _packets(site: Site) -> tuple[str, int, Packets]:
    uid, protocol = site.values.pick(list(TERMINALS)), site.values.pick((4, 5))
    return uid, protocol, Packets(site.values, uid, POINTS, protocol=protocol, large=_share(site))


def _share(site: Site) -> float:
    return LARGE if "reports" in site.large else 0.0


async def connect_packets(site: Site) -> None:
    """CONNECTs, and what some send after one that was refused."""
    uid, _, packets = _packets(site)
    await _exchange(site, "mqtt", packets.connect(f"u-{uid}", f"pin-{uid}"[:16]), *(packets.any() for _ in range(2)))


async def mqtt_packets(site: Site) -> None:
    """Packets of a terminal that has logged in."""
    uid, protocol, packets = _packets(site)
    many = site.values.random.randrange(1, 40)
    sent = [login(uid, f"u-{uid}", f"pin-{uid}"[:16], protocol=protocol), *(packets.any() for _ in range(many))]
    if site.values.chance(0.5):
        sent.append(b"\xe0\x00" if site.values.chance(0.8) else site.values.bytes(9))
    await _exchange(site, "mqtt", *sent)


async def mqtt_over_websocket(site: Site) -> None:
    """The same in frames, which are sometimes broken."""
    uid, protocol, packets = _packets(site)
    head = _UPGRADE.format(path="/mqtt", more="Sec-WebSocket-Protocol: mqtt\r\n").encode()
    data = [login(uid, f"u-{uid}", f"pin-{uid}"[:16], protocol=protocol), *(packets.any() for _ in range(9))]
    frames = [_frame(site, each, site.values.pick((0x82, 0x82, 0x82, 0x81, 0x02, 0x80, 0x89))) for each in data]
    await _exchange(site, "mqtt_websocket", head, *frames)


def _frame(site: Site, data: bytes, first: int) -> bytes:
    """A masked frame of a client [RFC 6455, 5.2]."""
    size, mask = len(data), site.values.random.randbytes(4)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 1 << 16:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    repeated = mask * (size // 4 + 1)
    masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated[:size], "big")).to_bytes(size, "big")
    whole = bytes((first,)) + length + mask + masked
    return site.values.damaged(whole) if site.values.chance(0.05) else whole


async def actions(site: Site) -> None:
    """Requests of the gateway over HTTP."""
    headers = {
        **site.headers(),
        "Content-Type": site.values.pick(("application/json",) * 9 + ("text/plain; charset=x",)),
    }
    await _request(site, "actions", "POST", GATEWAY, data=site.request(), headers=headers)


async def paths(site: Site) -> None:
    """Component paths: query strings, forms of both kinds, JSON."""
    values, operation = site.values, site.values.pick(list(PATHS))
    names = [each.encode_name for each in msgspec.structs.fields(operation.request)]
    fields = {values.pick(names) if names and values.chance(0.9) else values.text(): _text(site) for _ in range(5)}
    given: dict[str, Any] = {"headers": site.headers()}
    if operation.method == "POST" and values.chance(0.7):
        given |= _form(site, fields)
        fields = {}
    query = urlencode(fields, encoding="utf-8", errors="replace")
    await _request(site, "paths", operation.method, f"{operation.path}?{query}", **given)


def _text(site: Site) -> str:
    values = site.values
    text = values.text() if values.chance(0.6) else json.dumps(values.value(2))
    return text[:2_000].encode("utf-8", "replace").decode()


def _form(site: Site, fields: dict[str, str]) -> dict[str, Any]:
    values, form = site.values, aiohttp.FormData()
    match values.random.randrange(4):
        case 0:
            return {"data": values.json(values.value())}
        case 1:
            form.add_field("file", values.bytes(2_000), filename=_name(_text(site)))
        case 2:
            body = urlencode(fields, errors="replace").encode()
            return {"data": values.damaged(body), "headers": site.headers() | _TYPE_OF_FORM}
    for name, text in fields.items():
        form.add_field(_name(name), text)
    return {"data": form}


def _name(text: str) -> str:
    """What of a text the client lets stand in the head of a form's part."""
    return "".join(each for each in text[:100] if each.isprintable()) or "x"


_TYPE_OF_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def _request(site: Site, way: str, method: str, path: str, **given: Any) -> None:
    """One request, of whose answer sometimes only a little is taken."""
    url = f"http://127.0.0.1:{site.ports['http']}{path}"
    async with site.http.request(method, url, **given) as answer:
        if site.values.chance(0.05):
            await answer.content.read(100)
            answer.close()
            return
        site.note(way, answer.status, await answer.read())


async def heads(site: Site) -> None:
    """Requests that are no HTTP, or nearly."""
    values, body = site.values, site.request()
    method, path = (
        values.pick(("GET", "POST", "HEAD", "PUT", "G\0")),
        values.pick((GATEWAY, "/metrics", "/export/grid/a")),
    )
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"Host: {quote(values.text()[:50], errors='replace')}", f"Authorization: Bearer {site.tokens['viewer']}"]
    lines += values.pick(([f"Content-Length: {len(body)}"], ["Transfer-Encoding: chunked"], ["Content-Length: -1"]))
    lines += values.pick(([], ["Expect: 100-continue"], ["Content-Encoding: gzip"], ["X-Forwarded-For: ::1, a"]))
    data = "\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + body
    sent = [values.damaged(data) if values.chance(0.7) else data for _ in range(values.pick((1, 1, 3)))]
    said = await _exchange(site, "http", *sent)
    status = int(said[9:12]) if said[9:12].isdigit() else 0
    site.note("heads", status, said)


async def uploads(site: Site) -> None:
    """Files, and downloads of what there is or isn't."""
    values = site.values
    if values.chance(0.3):
        uid = quote(values.text()[:200], safe="", errors="replace")
        await _request(site, "downloads", "GET", DOWNLOAD.path.format(uid=uid), headers=site.headers())
        return
    start = values.pick((b"\x89PNG\r\n\x1a\n", b"GIF89a", b"%PDF-1.7", b"PK\3\4", b"<svg>", b"", b"\xff\xd8\xff"))
    body, name = start + values.bytes(60_000), quote(_text(site)[:300])
    if values.chance(0.3):
        form = aiohttp.FormData()
        form.add_field("file", body, filename=values.pick(("a.png", "b.bin", "../c.jpg", "d" * 300)))
        await _request(site, "uploads", "POST", UPLOAD.path, data=form, headers=site.headers())
    else:
        await _request(site, "uploads", "POST", f"{UPLOAD.path}?name={name}", data=body, headers=site.headers())


async def imports(site: Site) -> None:
    """Files to import: CSV, JSON, JSON lines, compressed or not."""
    values, each = site.values, site.values.pick(BULK)
    columns = [
        *values.random.sample(list(each.of.entity.fields), min(6, len(each.of.entity.fields))),
        values.text()[:300],
    ]
    rows = [[_text(site) for _ in columns] for _ in range(values.random.randrange(30))]
    match values.random.randrange(3):
        case 0:
            delimiter = values.pick(",;\t|")
            lines = [delimiter.join(columns), *(delimiter.join(row) for row in rows)]
            body = "\n".join(lines).encode(values.pick(("utf-8", "utf-16", "latin-1")), "replace")
        case 1:
            body = values.json([dict(zip(columns, map(values.changed, row), strict=True)) for row in rows])
        case _:
            body = b"\n".join(values.json(dict(zip(columns, row, strict=True))) for row in rows)
    body = values.damaged(body) if values.chance(0.3) else body
    headers = site.headers()
    if values.chance(0.2):
        body, headers = gzip.compress(body), headers | {"Content-Encoding": "gzip"}
        body = values.damaged(body) if values.chance(0.5) else body
    query = (
        f"dry_run={values.pick((0, 1))}&mode={values.pick(('create', 'upsert', 'x'))}&progress={values.pick((0, 1))}"
    )
    await _request(site, "imports", "POST", f"{each.path}?{query}", data=body, headers=headers)


async def exports(site: Site) -> None:
    """Files of records and of time series."""
    values = site.values
    if values.chance(0.5):
        path = values.pick(BULK).path
    else:
        key = quote(values.text()[:200], safe="", errors="replace") or "1"
        path = values.pick(EXPORTS).path.format(object_id=key, terminal_id=key)
    fields = {
        "format": values.pick(("csv", "json", "jsonl", "x")),
        values.pick(("start", "end", "keys", "secrets")): _text(site),
    }
    await _request(site, "exports", "GET", f"{path}?{urlencode(fields)}", headers=site.headers())


async def websocket(site: Site) -> None:
    """Requests over a WebSocket."""
    url = f"http://127.0.0.1:{site.ports['websocket']}{GATEWAY}"
    async with site.http.ws_connect(url, headers=site.headers(), max_msg_size=0) as socket:
        for _ in range(site.values.random.randrange(1, 20)):
            kind = aiohttp.WSMsgType.BINARY if site.values.chance(0.2) else aiohttp.WSMsgType.TEXT
            await socket.send_frame(site.request(), kind)
        with suppress(TimeoutError):
            while True:
                message = await socket.receive(QUIET_S)
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return
                site.note("websocket", 200, message.data.encode())


async def frames(site: Site) -> None:
    """Frames of a WebSocket that are no messages, or broken ones."""
    token = site.tokens[site.values.pick(("admin", "viewer"))]
    head = _UPGRADE.format(path=GATEWAY, more=f"Authorization: Bearer {token}\r\n").encode()
    kinds = (0x81, 0x81, 0x81, 0x82, 0x01, 0x80, 0x88, 0x89, 0x8A, 0xC1, 0x83)
    sent = [_frame(site, site.request(), site.values.pick(kinds)) for _ in range(9)]
    site.note("frames", 200, await _exchange(site, site.values.pick(("http", "websocket")), head, *sent))


async def lines(site: Site) -> None:
    """Requests on lines of TCP."""
    values = site.values
    proof = json.dumps({"action": "ping", "Authorization": site.headers()["Authorization"]}).encode() + b"\n"
    sent = [
        site.request() + values.pick((b"\n", b"\n", b"\n", b"\r\n", b"")) for _ in range(values.random.randrange(20))
    ]
    site.note("lines", 200, await _exchange(site, "tcp", proof, *sent))


async def following(site: Site) -> None:
    """A subscriber, who comes back to where he was, or elsewhere."""
    values = site.values
    kinds = values.random.sample(["grid", "mosaic", "event", "retainer", "terminal", "command", "object"], 3)
    wish = {"action": "subscribe", "kinds": kinds, "since": values.pick((0, 1, 2**62, values.random.randrange(2**50)))}
    wish |= values.pick(({}, {"terminal_id": values.pick(list(TERMINALS))}, {"object_id": values.pick(("1", "2"))}))
    wish |= values.pick(({}, {"keys": [values.text()[:500] for _ in range(values.random.randrange(50))]}))
    url = f"http://127.0.0.1:{site.ports['http']}{GATEWAY}"
    async with site.http.ws_connect(url, headers=site.headers(1.0), max_msg_size=0) as socket:
        for _ in range(3):
            request = values.json(values.changed(wish) if values.chance(0.3) else wish)
            await socket.send_frame(request, aiohttp.WSMsgType.TEXT)
        with suppress(TimeoutError):
            for _ in range(values.random.randrange(200)):
                message = await socket.receive(2.0)
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return
                site.note("following", 200, message.data.encode())


async def far_side(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The broker at the far side of a bridge: lets it in, most often, and sends what it likes."""
    values = site.values
    packets = Packets(values, "a-plain", POINTS, protocol=4, large=_share(site))
    try:
        async with asyncio.timeout(10):
            await reader.read(4_096)
            writer.write(b"\x20\x02\x00\x00" if values.chance(0.9) else values.bytes(9))
            subscribed = await reader.read(4_096)
            at = subscribed.find(0x82)
            writer.write(frame(0x90, subscribed[at + 2 : at + 4], b"\x01"))
            for _ in range(values.random.randrange(100)):
                writer.write(packets.publish() if values.chance(0.9) else packets.any())
                await writer.drain()
                await asyncio.sleep(0.05)
            site.counts["far side: connections"] += 1
    except (OSError, TimeoutError, asyncio.CancelledError):
        pass  # the end, for this side
    finally:
        writer.close()


WAYS: dict[str, Way] = {
    each.__name__: each
    for each in (
        *(connect_packets, mqtt_packets, mqtt_over_websocket),
        *(actions, paths, heads, uploads, imports, exports),
        *(websocket, frames, lines, following),
    )
}
"""By name."""
