"""The paths of the messenger (section 2 "Messenger")."""

from __future__ import annotations

from typing import Any

from terrazzo.api.kernel.component_path import ComponentPath
from terrazzo.api.kernel.envelope import MessengerReply
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.operations.messenger import INSTEAD_OF_SMS, SEND_EMAIL, SEND_PUSH, SEND_SMS, SEND_WECHAT, EmailSent


def _path(name: str, operation: Operation, result: Any = str, **more: Any) -> ComponentPath:
    return ComponentPath(
        base="messenger_base",
        path=f"/{name}",
        method="POST",
        operation=operation,
        result=result,
        reply=MessengerReply,
        **more,
    )


MESSENGER_PATHS = (
    _path("send-email", SEND_EMAIL, EmailSent, takes_files=True),
    _path("send-sms", SEND_SMS, instead=INSTEAD_OF_SMS),
    _path("send-app-push", SEND_PUSH),
    _path("send-wechat", SEND_WECHAT),
)
