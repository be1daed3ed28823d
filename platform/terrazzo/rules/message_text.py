"""Composes the one message that tells of a rule's notices, however many there are, in each channel's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from terrazzo.domain.message_draft import WEBHOOKS, MessageDraft
from terrazzo.domain.template import fill_text
from terrazzo.rules.notice import Notice
from terrazzo.rules.rule import Rule
from terrazzo.times import format_iso, format_spaced

MOST_LINES = 20  # of an e-mail
MOST_ITEMS = 100  # of a webhook
MOST_SUBJECT = 255
_MOST_SHORT = 480  # characters of an SMS or a push


def compose(
    rule: Rule, notices: Sequence[Notice], names: Mapping[int, str], *, count: int, reminder: int, zone: tzinfo
) -> MessageDraft:
    """The message that tells of a rule's notices.

    Args:
        names: of their objects, by id.
        count: how many notices there are in all; ``notices`` may be only the first of them.
        reminder: 0 where they are told the first time, else the number of the repetition.
        zone: of the times in the texts.
    """
    first = notices[0]
    values = [_values(each, names, count, zone) for each in notices[:MOST_LINES]]
    again = f"Reminder {reminder}: " if reminder else ""
    more = f" (+{count - 1})" if count > 1 else ""
    subject = again + fill_text(rule.subject, values[0])[: MOST_SUBJECT - 40] + more
    lines = [fill_text(rule.template, each) for each in values]
    left = count - len(lines)
    told = _Told(subject, again + lines[0][:_MOST_SHORT] + more, "\n".join([*lines, *_rest(left)]), values[0], first)
    is_webhook = rule.channel == "webhook"
    content = _webhook(rule, notices, names, count, reminder, zone) if is_webhook else _CONTENTS[rule.channel](told)
    return MessageDraft(
        company_id=rule.company_id,
        project_id=WEBHOOKS if is_webhook else rule.project_id,
        channel=rule.channel,
        recipients=() if is_webhook else rule.recipients,
        content=content,
        object_id=first.object_id,
        rule_id=rule.id,
    )


class _Told:
    """The texts of a message, from which each channel takes what it sends."""

    def __init__(self, subject: str, short: str, text: str, values: Mapping[str, str], first: Notice) -> None:
        self.subject = subject
        self.short = short
        self.text = text
        self.values = values
        self.first = first


def _email(told: _Told) -> dict[str, Any]:
    return {"EmailSubject": told.subject, "EmailContent": told.text, "EmailFile": []}


def _sms(told: _Told) -> dict[str, Any]:
    values = told.values
    return {
        "msgdata": told.short,
        "equipment_id": values["object_id"],
        "equipment_name": values["object"],
        "datetime": values["time"],
    }


def _android(told: _Told) -> dict[str, Any]:
    body = {"Ticker": told.subject, "Title": told.subject, "Text": told.short, "Remark": ""}
    rest = {"AfterOpen": "go_app", "Url": "", "DesText": told.subject}
    return {"Body": body, **rest, "id": told.first.record_id, "type": "alert"}


def _ios(told: _Told) -> dict[str, Any]:
    alert = {"AlertTitle": told.subject, "AlertSubtitle": "", "AlertBody": told.short}
    extra = {"id": told.first.record_id, "type": "alert"}
    return {"APS": alert, "Extra": extra, "DesText": told.subject, "type": "alert"}


def _wechat(told: _Told) -> dict[str, Any]:
    values = told.values
    texts = {"first": told.subject, "remark": told.short}
    texts |= {f"keyword{n}": values[name] for n, name in enumerate(("object", "label", "value", "time"), 1)}
    data = {name: {"value": text, "color": ""} for name, text in texts.items()}
    return {"data_msg": data, **data}


_CONTENTS: Mapping[str, Callable[[_Told], dict[str, Any]]] = {
    "email": _email,
    "sms": _sms,
    "android": _android,
    "ios": _ios,
    "wechat": _wechat,
}


def _webhook(
    rule: Rule, notices: Sequence[Notice], names: Mapping[int, str], count: int, reminder: int, zone: tzinfo
) -> dict[str, Any]:
    items = [
        {
            "kind": each.kind,
            "id": each.record_id,
            "object_id": str(each.object_id),
            "object": names.get(each.object_id, ""),
            "code": each.code,
            "label": each.label,
            "value": each.value,
            "time": format_iso(each.time_us, zone),
        }
        for each in notices[:MOST_ITEMS]
    ]
    return {"rule_id": rule.id, "rule": rule.name, "reminder": reminder, "count": count, "items": items}


def _values(notice: Notice, names: Mapping[int, str], count: int, zone: tzinfo) -> dict[str, str]:
    return {
        "object": names.get(notice.object_id) or str(notice.object_id),
        "object_id": str(notice.object_id),
        "kind": notice.kind,
        "code": notice.code,
        "label": notice.label,
        "value": notice.value,
        "time": format_spaced(notice.time_us, zone),
        "count": str(count),
    }


def _rest(left: int) -> list[str]:
    return [f"... and {left} more"] if left > 0 else []
