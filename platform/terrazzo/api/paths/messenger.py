"""The paths of the messenger (section 2 "Messenger"), whose envelopes say what a provider said."""

from __future__ import annotations

from terrazzo.api.kernel.envelope import MessengerReply
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.operations.messenger import (
    EmailSent,
    SendEmail,
    SendPush,
    SendSms,
    SendWechat,
    handle_send_app_push,
    handle_send_email,
    handle_send_sms,
    handle_send_wechat,
)
from terrazzo.domain.actor import Role

SEND_EMAIL = Operation(
    name="send_email",
    summary="Sends an e-mail",
    request=SendEmail,
    result=EmailSent,
    permission=Role.OPERATOR,
    handler=handle_send_email,
    method="POST",
    path="/api/send/send-email",
    reply=MessengerReply,
    takes_files=True,
)
SEND_PUSH = Operation(
    name="send_app_push",
    summary="Sends an app push",
    request=SendPush,
    result=str,
    permission=Role.OPERATOR,
    handler=handle_send_app_push,
    method="POST",
    path="/api/send/send-app-push",
    reply=MessengerReply,
)
SEND_WECHAT = Operation(
    name="send_wechat",
    summary="Sends an official-account message",
    request=SendWechat,
    result=str,
    permission=Role.OPERATOR,
    handler=handle_send_wechat,
    method="POST",
    path="/api/send/send-wechat",
    reply=MessengerReply,
)
SEND_SMS = Operation(
    name="send_sms",
    summary="Sends an SMS",
    request=SendSms,
    result=str,
    permission=Role.OPERATOR,
    handler=handle_send_sms,
    method="POST",
    path="/api/send/send-sms",
    reply=MessengerReply,
    # the document's samples send app push and official-account messages here: told by their fields
    instead={
        "android_msg_group": SEND_PUSH,
        "ios_msg_group": SEND_PUSH,
        "open_ids": SEND_WECHAT,
        "data_msg": SEND_WECHAT,
    },
)

PATHS = (SEND_EMAIL, SEND_SMS, SEND_PUSH, SEND_WECHAT)
