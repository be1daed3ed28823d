"""The files of an e-mail: those that it names of the platform's own, and those that the form carries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from terrazzo.api.kernel.attachments import MOST_FILES
from terrazzo.api.kernel.fields import parse_json_text
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, NotFound
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say

_UID = re.compile(r"[0-9a-f]{32}")


async def gather_files(
    services: Services, actor: Actor, named: Any, uploaded: tuple[Attachment, ...]
) -> tuple[Attachment, ...]:
    """All files of an e-mail.

    Args:
        named: ``EmailFile``: the uid or the address of an uploaded file, ``{url}`` or ``{uid}``, or a list of these.

    Raises:
        BadParameter: there is no such file, or they are too large together.
    """
    most, files = services.messenger.attachment_bytes, list(uploaded)
    left = most - sum(len(file.content) for file in files)
    for uid in uids_of(named):
        if len(files) == MOST_FILES:
            raise BadParameter("email_group", say("too_many_attachments", most=MOST_FILES))
        try:
            stored = await services.files.open_for(actor, uid)
        except NotFound:
            raise BadParameter("email_group", say("no_attachment", uid=uid)) from None
        left -= stored.size
        if left >= 0:
            content = await asyncio.to_thread(stored.path.read_bytes)
            files.append(Attachment(stored.name, stored.media_type, content))
    if left < 0:
        raise BadParameter("email_group", say("attachments_too_large", most=most))
    if len(files) > MOST_FILES:
        raise BadParameter("email_group", say("too_many_attachments", most=MOST_FILES))
    return tuple(files)


def uids_of(named: Any) -> Iterator[str]:
    """The uids of the files that ``EmailFile`` names.

    Raises:
        BadParameter: an entry names none.
    """
    if isinstance(named, str) and named.lstrip().startswith(("[", "{")):
        try:
            named = parse_json_text(named)
        except ValueError as error:
            raise BadParameter("email_group", say("attachment_wrong", reason=error)) from None
    if named in (None, "", [], {}):
        return
    for entry in named if isinstance(named, list) else [named]:
        text = entry.get("uid") or entry.get("url") if isinstance(entry, dict) else entry
        found = _UID.findall(text) if isinstance(text, str) else []
        if not found:
            raise BadParameter("email_group", say("attachment_not_uploaded", name=str(entry)[:64]))
        yield found[-1]
