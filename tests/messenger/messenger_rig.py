"""A messenger on a database of its own, with projects as the configuration has them; and HTTP providers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from aiohttp import web

from migrated import seed
from own_platform import new_caller, new_mailer
from support import new_tasks
from terrazzo.config.messenger import MessengerSection
from terrazzo.config.values import Given, check_value
from terrazzo.database.database import Database
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.message_draft import MessageDraft
from terrazzo.messenger.journal import MessageJournal
from terrazzo.messenger.messenger import Messenger
from terrazzo.messenger.project_factory import build_projects
from terrazzo.times import now_us

ACTOR = Actor(user_id=1, username="one", company_id=1, role=Role.OPERATOR)
LOOPBACK = ("127.0.0.0/8",)


class Clock:
    """Runs with real time, and can be put forward."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_us


def section_of(*projects: dict[str, Any], **keys: Any) -> MessengerSection:
    """The section as a file with these tables has it."""
    from msgspec import inspect

    kinds = {each.encode_name: each.type for each in inspect.type_info(MessengerSection).fields}
    given = {"project": list(projects), **keys}
    return MessengerSection(**{name: check_value(kinds[name], Given(value, name)) for name, value in given.items()})


@asynccontextmanager
async def running_messenger(
    folder: Path, section: MessengerSection, *, clock: Clock | None = None
) -> AsyncIterator[Messenger]:
    """A started messenger, stopped at the end; a second one on the folder is a restart."""
    database = await Database.open("", data_dir=seed(folder))
    projects = build_projects(section, mailer_of=new_mailer, caller=new_caller(section))
    messenger = Messenger(
        MessageJournal(database, zone=UTC),
        projects,
        tasks=new_tasks(),
        queued_messages=section.queued_messages,
        attachment_bytes=section.attachment_bytes,
        clock=clock or now_us,
    )
    await messenger.start()
    try:
        yield messenger
    finally:
        await messenger.stop()
        await database.close()


def email(*recipients: str, project_id: int = 1, **more: Any) -> MessageDraft:
    content = {"EmailSubject": "Überlauf", "EmailContent": "Tank 7\nis full", "EmailFile": []}
    return MessageDraft(
        company_id=1, project_id=project_id, channel="email", recipients=recipients, content=content, **more
    )


def sms(*recipients: str, text: str = 'say "hi" \\ \n{recipient}', **more: Any) -> MessageDraft:
    return MessageDraft(
        company_id=1, project_id=1, channel="sms", recipients=recipients, content={"msgdata": text}, **more
    )


@dataclass
class Provider:
    """An HTTP provider that answers as a test says."""

    answers: list[tuple[int, Any]] = field(default_factory=list)  # in turn; then 200 {"code": 0}
    hangs: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)
    headers: Mapping[str, str] = field(default_factory=dict)  # of its answers
    requests: list[tuple[web.Request, bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/send"

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append((request, await request.read()))
        if self.hangs:
            await self.released.wait()
        status, body = self.answers.pop(0) if self.answers else (200, {"code": 0, "msg": "taken"})
        headers = {"Content-Type": "application/json", **self.headers}
        return web.Response(body=json.dumps(body), status=status, headers=headers)

    @asynccontextmanager
    async def running(self, ssl_context: Any = None) -> AsyncIterator[Provider]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()
