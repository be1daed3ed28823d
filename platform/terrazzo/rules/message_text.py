"""Composes the one message that tells of a rule's notices, however many there are, in each channel's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from terrazzo.domain.message_draft import WEBHOOKS, MessageDraft
from terrazzo.domain.template import fill_text
from terrazzo.metadata.definitions.rules import OUTAGE
from terrazzo.rules.notice import MISSED, WORDS, Notice
from terrazzo.rules.rule import Rule
from terrazzo.times import format_iso, format_spaced

MOST_LINES = 20  # of an e-mail
MOST_DIGEST_LINES = 200
MOST_ITEMS = 100  # of a webhook
MOST_NAMED = MOST_DIGEST_LINES
MOST_SUBJECT = 255
_OF_NOBODY = (OUTAGE, MISSED)  # kinds that are about no terminal and no object
_MOST_NAMES = 3  # in a summary
_MOST_NAME = 40  # characters of each
_MOST_SHORT = 480  # characters of an SMS or a push


class Telling(NamedTuple):
    """What one message tells of.

    Attributes:
        notices: the first of them.
        names: of what they are about, by the notice's id.
        kinds: how many there are of each kind.
        shared: what all of them have in common, in words.
        reminder: 0 where they are told the first time, else the number of the repetition.
    """

    notices: Sequence[Notice]
    names: Mapping[int, str]
    kinds: Mapping[str, int]
    shared: Sequence[str] = ()
    reminder: int = 0

    @property
    def total(self) -> int:
        """How many there are in all."""
        return sum(self.kinds.values())


def compose(rule: Rule, told: Telling, *, zone: tzinfo) -> MessageDraft:
    """The message that tells of a rule's notices; ``zone``: of the times in the texts."""
    is_webhook = rule.channel == "webhook"
    content = _webhook(rule, told, zone) if is_webhook else _CONTENTS[rule.channel](_texts(rule, told, zone))
    return MessageDraft(
        company_id=rule.company_id,
        project_id=WEBHOOKS if is_webhook else rule.project_id,
        channel=rule.channel,
        recipients=() if is_webhook else rule.recipients,
        content=content,
        object_id=told.notices[0].object_id or None,
        rule_id=rule.id,
    )


class _Texts(NamedTuple):
    """The texts of a message, from which each channel takes what it sends."""

    subject: str
    short: str
    text: str
    values: Mapping[str, str]
    first: Notice


def _texts(rule: Rule, told: Telling, zone: tzinfo) -> _Texts:
    most = MOST_LINES if rule.digest == "none" else MOST_DIGEST_LINES
    values = [_values(each, told, zone) for each in told.notices[:most]]
    lines = [fill_text(rule.template, each) for each in values]
    again = f"Reminder {told.reminder}: " if told.reminder else ""
    rest = _rest(told.total - len(lines))
    first = told.notices[0]
    if told.total > 1 and not first.is_happening:
        summary = summarize(rule, told)
        short = again + summary
        return _Texts(short[:MOST_SUBJECT], short[:_MOST_SHORT], "\n".join([summary, *lines, *rest]), values[0], first)
    more = f" (+{told.total - 1})" if told.total > 1 else ""
    subject = again + fill_text(rule.subject, values[0])[: MOST_SUBJECT - 40] + more
    return _Texts(subject, again + lines[0][:_MOST_SHORT] + more, "\n".join([*lines, *rest]), values[0], first)


def summarize(rule: Rule, told: Telling) -> str:
    """What has become of how many terminals or objects, the names of the first ones, and what they have in common."""
    noun = "objects" if rule.is_of_objects else "terminals"
    parts = [
        WORDS[kind] if kind in _OF_NOBODY else f"{count:,} {noun if count > 1 else noun[:-1]} {WORDS.get(kind, kind)}"
        for kind, count in told.kinds.items()
    ]
    first = [each for each in told.notices[:_MOST_NAMES] if each.kind not in _OF_NOBODY]
    names = list(dict.fromkeys(told.names[each.id] for each in first))
    left = told.total - sum(told.kinds.get(kind, 0) for kind in _OF_NOBODY) - len(names)
    more = f" and {left:,} more" if left > 0 else ""
    shared = f" ({', '.join(told.shared)})" if told.shared else ""
    listed = ": " + ", ".join(name[:_MOST_NAME] for name in names) if names else ""
    return f"{', '.join(parts)}{listed}{more}{shared}"


def _email(told: _Texts) -> dict[str, Any]:
    return {"EmailSubject": told.subject, "EmailContent": told.text, "EmailFile": []}


def _sms(told: _Texts) -> dict[str, Any]:
    values = told.values
    return {
        "msgdata": told.short,
        "equipment_id": values["object_id"],
        "equipment_name": values["object"],
        "datetime": values["time"],
    }


def _android(told: _Texts) -> dict[str, Any]:
    body = {"Ticker": told.subject, "Title": told.subject, "Text": told.short, "Remark": ""}
    rest = {"AfterOpen": "go_app", "Url": "", "DesText": told.subject}
    return {"Body": body, **rest, "id": told.first.record_id, "type": "alert"}


def _ios(told: _Texts) -> dict[str, Any]:
    alert = {"AlertTitle": told.subject, "AlertSubtitle": "", "AlertBody": told.short}
    extra = {"id": told.first.record_id, "type": "alert"}
    return {"APS": alert, "Extra": extra, "DesText": told.subject, "type": "alert"}


def _wechat(told: _Texts) -> dict[str, Any]:
    values = told.values
    texts = {"first": told.subject, "remark": told.short}
    texts |= {f"keyword{n}": values[name] for n, name in enumerate(("object", "label", "value", "time"), 1)}
    data = {name: {"value": text, "color": ""} for name, text in texts.items()}
    return {"data_msg": data, **data}


_CONTENTS: Mapping[str, Callable[[_Texts], dict[str, Any]]] = {
    "email": _email,
    "sms": _sms,
    "android": _android,
    "ios": _ios,
    "wechat": _wechat,
}


def _webhook(rule: Rule, told: Telling, zone: tzinfo) -> dict[str, Any]:
    first, whole = told.notices[0], {"rule_id": rule.id, "rule": rule.name, "reminder": told.reminder}
    if not first.is_happening:
        whole |= {"summary": summarize(rule, told), "kinds": dict(told.kinds), "shared": list(told.shared)}
    items = [_item(rule, each, told, zone) for each in told.notices[:MOST_ITEMS]]
    return {**whole, "count": told.total, "items": items}


def _item(rule: Rule, notice: Notice, told: Telling, zone: tzinfo) -> dict[str, Any]:
    item = {
        "kind": notice.kind,
        "id": notice.record_id,
        "object_id": str(notice.object_id),
        "object": told.names[notice.id],
        "code": notice.code,
        "label": notice.label,
        "value": notice.value,
        "time": format_iso(notice.time_us, zone),
    }
    if notice.is_happening:
        return item
    if notice.object_id == 0:
        item["object_id"] = ""
    return item if rule.is_of_objects else {**item, "terminal": notice.code}


def _values(notice: Notice, told: Telling, zone: tzinfo) -> dict[str, str]:
    return {
        "object": told.names[notice.id],
        "object_id": str(notice.object_id),
        "kind": notice.kind,
        "code": notice.code,
        "label": notice.label,
        "value": notice.value,
        "time": format_spaced(notice.time_us, zone),
        "count": str(told.total),
        "terminal": "" if notice.is_happening else notice.code,
    }


def _rest(left: int) -> list[str]:
    return [f"... and {left} more"] if left > 0 else []
