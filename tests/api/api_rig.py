"""A gateway with everything real behind it: SQLite, RocksDB, users, tokens, an HTTP server and client.

No broker listens: nobody is there to be sent anything.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, tzinfo
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp

from migrated import seed
from support import new_tasks
from terrazzo.access.tokens import Tokens, actor_of, load_token_key
from terrazzo.access.users import UserLogin, ensure_admin
from terrazzo.analysis.analysis import Analysis
from terrazzo.api.kernel.services import ReadinessCheck, Services
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.server import HttpServer
from terrazzo.audit.log import AuditLog
from terrazzo.campaigns.download_links import SignedLinks
from terrazzo.campaigns.terminal_records import CampaignTerminals
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.commands.journal import CommandJournal
from terrazzo.commands.pusher import Pusher
from terrazzo.crypto.passwords import hash_password
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.file_kinds import KINDS
from terrazzo.domain.registry import Registry
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.events.events import EventRecords
from terrazzo.events.labels import LabelRecords
from terrazzo.files.folder import FileFolder
from terrazzo.files.library import FileLibrary
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import Seals
from terrazzo.live.frame_sender import FrameSender
from terrazzo.live.hub import LiveHub
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.replay.journal import ReplayJournal
from terrazzo.mapping.replay.run import ReplayParts
from terrazzo.mapping.replay.runner import ReplayRunner
from terrazzo.mapping.replay.running_objects import RunningObjects
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.messenger import Messenger
from terrazzo.messenger.projects import Projects
from terrazzo.metadata.entities import Entities
from terrazzo.objects.flags import ObjectFlagReader
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.times import now_us
from terrazzo_adapters.rocksdb import RocksStore

PASSWORD = "correct horse battery"
BODY_BYTES = 1 << 20


@dataclass(frozen=True)
class Limits:
    body_bytes: int = BODY_BYTES
    import_bytes: int = 4 * BODY_BYTES
    file_bytes: int = 4 * BODY_BYTES
    connections: int = 1_000
    pipelined_requests: int = 32
    request_timeout_s: float = 30
    idle_timeout_s: float = 300
    ws_subscriptions: int = 100


@dataclass(frozen=True)
class Rig:
    """A running server, a client, and what stands behind."""

    services: Services
    presence: PresenceRegister
    http: aiohttp.ClientSession
    tokens: Mapping[str, str]  # root, admin, operator, viewer; stranger is another company's admin

    async def post(self, body: bytes, *, token: str | None = None, **headers: str) -> tuple[int, Any]:
        """Status and decoded answer of a gateway request."""
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        async with self.http.post("/apiproxy/api", data=BytesIO(body), headers=sent) as response:
            return response.status, json.loads(await response.read())

    async def ask(self, action: str, who: str = "admin", **fields: Any) -> dict[str, Any]:
        """The envelope of an action, as one of the users."""
        token = self.tokens.get(who)
        status, answer = await self.post(json.dumps({"action": action, **fields}).encode(), token=token)
        assert status == 200, answer
        return dict(answer)

    async def call(self, action: str, who: str = "admin", **fields: Any) -> Any:
        """The result of an action that must succeed."""
        answer = await self.ask(action, who, **fields)
        assert answer["code"] == 200, answer
        return answer["result"]

    async def get(self, path: str, who: str = "admin", **query: str) -> tuple[int, Any]:
        """Status and decoded answer of a component path."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}
        async with self.http.get(path, params=query, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def add_config(self, who: str = "admin", **fields: Any) -> str:
        """A configuration's uid."""
        return str((await self.call("create_terminal_config", who, **(config_fields() | fields)))["uid"])

    async def add_terminal(self, uid: str, who: str = "admin", **fields: Any) -> int:
        """A terminal's id; its configuration is made too unless given."""
        config = fields.pop("config_id", None) or await self.add_config(who)
        created = await self.call("create_terminal", who, **(terminal_fields(uid, config) | fields))
        return int(created["id"])


def config_fields() -> dict[str, Any]:
    return {"name": "standard", "created_by": 1, "last_modified_by": 1, "is_available": 1}


def terminal_fields(uid: str, config_uid: str) -> dict[str, Any]:
    return {
        "uid": uid,
        "name": f"Terminal {uid}",
        "type": "Adapter-II",
        "config_id": config_uid,
        "mode": "pwd",
        "username": f"u-{uid}"[:32],
        "pin": f"p-{uid}"[:16],
        "access": "all",
        "created_by": 1,
        "last_modified_by": 1,
        "is_available": 1,
    }


@asynccontextmanager
async def open_rig(
    folder: Path,
    *,
    zone: tzinfo = UTC,
    prefixes: Mapping[str, str] | None = None,
    readiness: Mapping[str, ReadinessCheck] | None = None,
    clock: Callable[[], int] = now_us,
    limits: Limits | None = None,
    live: LiveHub | None = None,
    messenger: Messenger | None = None,
) -> AsyncIterator[Rig]:
    """Everything started, and two companies with their users."""
    async with AsyncExitStack() as stack:
        database = await Database.open("", data_dir=seed(folder))
        stack.push_async_callback(database.close)
        store = await RocksStore.open(folder / "series")
        stack.push_async_callback(store.close)
        registry = Registry()
        entities = Entities.open(database, registry, Secrets.open(folder), zone=zone)
        tokens = await Tokens.open(database, entities, key=load_token_key(folder), token_hours=2, clock=clock)
        audit = AuditLog(database, zone=zone, clock=clock)
        presence = PresenceRegister()
        bus = EmbeddedBus(registry, presence, Seals())
        tasks = new_tasks()
        commands = CommandDispatcher(
            CommandJournal(database), registry=registry, bus=bus, configurations=entities.configurations, tasks=tasks
        )
        await commands.start()
        stack.push_async_callback(commands.stop)
        live = live or LiveHub(registry, started_us=now_us())
        pump = FrameSender(live, tasks)
        pump.start()
        stack.push_async_callback(pump.stop)
        mapper = await ReportMapper.open(store, entities, EffectQueue(EffectWriter(database), tasks))
        stack.push_async_callback(mapper.effect_queue.stop)
        ingest = IngestPipeline(store, bus, tasks=tasks, mapper=mapper)
        ingest.start()
        stack.push_async_callback(ingest.stop)
        folder_of_files = FileFolder(folder / "files", most_bytes=(limits or Limits()).file_bytes)
        files = FileLibrary(database, entities.uploads, folder_of_files, allowed=KINDS)
        analysis = await Analysis.open(store, database, entities, zone=zone, clock=clock)
        parts = ReplayParts(store, database, RunningObjects(mapper, ingest, bus), analysis, clock)
        replays = ReplayRunner(ReplayJournal(database, zone=zone), parts, tasks)
        replays.start()
        stack.push_async_callback(replays.stop)
        services = Services(
            entities=entities,
            registry=registry,
            store=store,
            bus=bus,
            broker=bus,
            commands=commands,
            pusher=Pusher(commands, entities, registry),
            files=files,
            object_flags=ObjectFlagReader(registry, bus, mapper.engine),
            events=EventRecords(database, zone=zone),
            labels=LabelRecords(database, mapper, zone=zone),
            campaigns=CampaignTerminals(database),
            messenger=messenger or Messenger(MessageJournal(database, zone=zone), Projects(), tasks=tasks),
            firmware=SignedLinks(files, key=bytes(32), base_url="http://127.0.0.1", lifetime_s=60),
            login=UserLogin(entities, tokens, audit, clock=clock),
            tokens=tokens,
            live=live,
            audit=audit,
            analysis=analysis,
            replays=replays,
            limits=limits or Limits(),
            zone=zone,
            prefixes=prefixes or {},
            readiness=readiness or {},
        )
        apps = build_apps(services)
        server = HttpServer(apps.http, apps.connection_limiter, limits=services.limits, port_name="http")
        port = await server.start("127.0.0.1", 0)
        stack.push_async_callback(server.stop)
        http = await stack.enter_async_context(aiohttp.ClientSession(f"http://127.0.0.1:{port}"))
        yield Rig(services, presence, http, await _add_users(entities, tokens))


async def _add_users(entities: Entities, tokens: Tokens) -> dict[str, str]:
    await ensure_admin(entities, data_dir=Path(), password=PASSWORD)
    await entities.projects.ensure_default()
    other = await entities.companies.create(SYSTEM, {"name": "other"})
    made = {"root": await entities.users.by_name("admin")}
    for name, role, company in [
        ("admin", "admin", 1),
        ("operator", "operator", 1),
        ("viewer", "viewer", 1),
        ("stranger", "admin", other["id"]),
    ]:
        values = {"username": f"{name}-user", "role": role, "permission_company_id": company}
        made[name] = await entities.users.create_hashed(SYSTEM, values, await _password_hash())
    return {name: tokens.issue(actor_of(row)) for name, row in made.items() if row is not None}


_hashes: list[str] = []


async def _password_hash() -> str:
    """The hash of ``PASSWORD``, which takes its time only once."""
    if not _hashes:
        _hashes.append(await hash_password(PASSWORD))
    return _hashes[0]
