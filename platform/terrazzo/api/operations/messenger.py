"""What is sent to people (section 2 "Messenger"): e-mail, SMS, app push, official-account messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.attachments import Attachments
from terrazzo.api.kernel.envelope import ServiceAnswer
from terrazzo.api.kernel.fields import IdempotencyKey, Key
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.email_files import gather_files
from terrazzo.api.operations.messenger_fields import (
    Android,
    Email,
    EmailAddresses,
    Group,
    Ios,
    Recipients,
    Sms,
    Template,
)
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.message_draft import MessageDraft
from terrazzo.errors import BadParameter, ServiceFailed
from terrazzo.messenger.message import MessageState
from terrazzo.reasons import say, say_each
from terrazzo.times import format_spaced

ProjectId = Annotated[int, Meta(ge=1, le=2**31 - 1, description="the messenger's project")]


class Sending(msgspec.Struct, kw_only=True):
    """What all messages have."""

    project_id: ProjectId = 1
    object_id: Key | None = None
    idempotency_key: IdempotencyKey | None = None


class SendEmail(msgspec.Struct, kw_only=True):
    """``EmailFile`` names uploaded files; files of the form go along too."""

    project_id: ProjectId
    email_group: Email
    send_user_group: EmailAddresses
    object_id: Key
    idempotency_key: IdempotencyKey | None = None
    attachments: Attachments = msgspec.field(default_factory=Attachments)


class SendSms(Sending):
    """The attributes of ``sms_group`` are those of the project's provider."""

    sms_group: Sms
    send_user_group: Recipients = msgspec.field(default_factory=Recipients)


class SendPush(Sending):
    """At least one of the two lists of devices isn't empty."""

    android_msg_group: Android | None = None
    send_android_user_group: Recipients = msgspec.field(default_factory=Recipients)
    ios_msg_group: Ios | None = None
    send_ios_user_group: Recipients = msgspec.field(default_factory=Recipients)
    id: int | str = 0
    type: Annotated[str, Meta(max_length=64)] = "alert"


class SendWechat(Sending):
    """The entries of ``data_msg`` are those of the official account's template."""

    open_ids: Recipients
    data_msg: Template


class EmailValue(msgspec.Struct):
    """What was asked for, and the ids of the mails."""

    request: Any
    response: list[str]


class EmailSent(msgspec.Struct):
    """The record of a sent e-mail; ``class_id`` is the project's name."""

    class_id: str
    project_id: int
    object_id: int
    value: EmailValue
    created: str
    is_available: int
    id: int


async def handle_send_email(services: Services, actor: Actor, request: SendEmail) -> ServiceAnswer:
    """Sends one e-mail to all recipients, with the files that it names and those of the form."""
    group = request.email_group.value
    files = await gather_files(services, actor, group.EmailFile, request.attachments.files)
    content = {**msgspec.to_builtins(group), "EmailFile": [file.name for file in files]}
    rows = await _submit(
        services, actor, request, "email", request.send_user_group.names, content, field="send_user_group", files=files
    )
    return _answer(rows, _email_sent(services, rows[0]))


async def handle_send_sms(services: Services, actor: Actor, request: SendSms) -> ServiceAnswer:
    """Sends an SMS; a project of variant B needs all attributes of ``sms_group`` (section 2 "Messenger")."""
    group = request.sms_group.value
    project = services.messenger.projects.find(actor.company_id, request.project_id, "sms")
    if project.sms_variant == "b":
        missing = [name for name in ("equipment_id", "equipment_name", "datetime") if not getattr(group, name)]
        if missing:
            raise BadParameter("sms_group", say_each([(name, say("is_required")) for name in missing], named=True))
    names = request.send_user_group.names
    rows = await _submit(services, actor, request, "sms", names, msgspec.to_builtins(group), field="send_user_group")
    return _answer(rows, "")


async def handle_send_app_push(services: Services, actor: Actor, request: SendPush) -> ServiceAnswer:
    """Sends a push to Android and to iOS devices, whichever are named: a message for each kind."""
    parts = [part for part in _push_parts(request) if part.devices]
    if not parts:
        raise BadParameter("send_android_user_group", say("names_no_device"))
    for part in parts:
        if part.group is None:
            raise BadParameter(part.group_field, say("is_required"))
        services.messenger.projects.find(actor.company_id, request.project_id, part.channel)
    rows: list[Row] = []
    for part in parts:
        assert part.group is not None
        content = _push_content(request, part.group)
        rows += await _submit(services, actor, request, part.channel, part.devices, content, field=part.devices_field)
    return _answer(rows, "")


def _push_content(request: SendPush, group: Group[Any]) -> dict[str, Any]:
    """What a push's template can name: the group's attributes, and ``id`` and ``type``, which iOS has in ``Extra``."""
    content = {"id": request.id, "type": request.type, **msgspec.to_builtins(group.value)}
    if "Extra" in content:
        content["Extra"].setdefault("type", request.type)
    return content


class _PushPart(NamedTuple):
    """What a push says to one kind of device: the message, the devices, and the fields that they came in."""

    channel: str
    group: Group[Any] | None
    group_field: str
    devices: tuple[str, ...]
    devices_field: str


def _push_parts(request: SendPush) -> Iterator[_PushPart]:
    android, ios = request.send_android_user_group.names, request.send_ios_user_group.names
    yield _PushPart("android", request.android_msg_group, "android_msg_group", android, "send_android_user_group")
    yield _PushPart("ios", request.ios_msg_group, "ios_msg_group", ios, "send_ios_user_group")


async def handle_send_wechat(services: Services, actor: Actor, request: SendWechat) -> ServiceAnswer:
    """Sends a message of the official account to the followers ``open_ids``."""
    data = msgspec.to_builtins(request.data_msg.value)
    content = {"data_msg": data, **data}
    rows = await _submit(services, actor, request, "wechat", request.open_ids.names, content, field="open_ids")
    return _answer(rows, "")


async def _submit(
    services: Services,
    actor: Actor,
    request: Any,
    channel: str,
    recipients: tuple[str, ...],
    content: Mapping[str, Any],
    *,
    field: str,
    files: Sequence[Any] = (),
) -> Sequence[Row]:
    if not recipients:
        raise BadParameter(field, say("expected_recipient"))
    object_id = None if request.object_id is None else await find_object(services, actor, request.object_id)
    key = request.idempotency_key
    draft = MessageDraft(
        company_id=actor.company_id,
        project_id=request.project_id,
        channel=channel,
        recipients=recipients,
        content=content,
        object_id=object_id,
        created_by=actor.user_id,
        idempotency_key=f"{channel} {key}"[:128] if key is not None else None,
        attachments=tuple(files),
    )
    return await services.messenger.submit(actor, draft)


def _answer(rows: Sequence[Row], result: Any) -> ServiceAnswer:
    """The answer of the provider.

    Raises:
        ServiceFailed: a message wasn't sent; it says why the first of these wasn't.
    """
    uids = ",".join(row["uid"] for row in rows)
    unsent = next((row for row in rows if row["state"] != MessageState.SENT.value), None)
    said = unsent or rows[-1]
    service = {"svc_code": said["svc_code"], "svc_ext": uids[:4_096], "svc_msg": said["svc_msg"]}
    if unsent is None:
        return ServiceAnswer(**service, result=result)
    raise ServiceFailed(_why(unsent), **service)


def _why(row: Row) -> str:
    reason = row["reason"] or "it has not been tried yet"
    match MessageState(row["state"]):
        case MessageState.QUEUED | MessageState.SENDING:
            return say("message_not_sent_yet", message=row["id"], reason=reason)
        case MessageState.UNKNOWN:
            return say("message_perhaps_sent", message=row["id"], reason=reason)
    return say("message_not_sent", message=row["id"], reason=reason)


def _email_sent(services: Services, row: Row) -> EmailSent:
    project = services.messenger.projects.get(row["project_id"])
    response = row["response"] or {}
    return EmailSent(
        class_id=project.section.name if project else "",
        project_id=row["project_id"],
        object_id=row["object_id"],
        value=EmailValue(
            {"email_group": row["content"], "send_user_group": row["recipients"]}, [response["message_id"]]
        )
        if "message_id" in response
        else EmailValue({}, []),
        created=format_spaced(row["created"], services.zone),
        is_available=row["is_available"],
        id=row["id"],
    )
