"""The fields of the messenger's requests: groups of attributes and lists of recipients, as JSON or as its text."""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.api.kernel.fields import Parsed, kind, parse_json_text
from terrazzo.api.kernel.schema_faults import schema_fault
from terrazzo.reasons import say

MOST_RECIPIENTS = 1_000
MOST_TEXT = 65_536
_ADDRESS = re.compile(r"[^\s@<>,;:\"\\()\[\]]+@[^\s@<>,;:\"\\()\[\]]+")

Words = Annotated[str, Meta(max_length=MOST_TEXT)]
Filled = Annotated[str, Meta(min_length=1, max_length=MOST_TEXT)]
S = TypeVar("S", bound=msgspec.Struct)


class EmailGroup(msgspec.Struct):
    """Section 2 "Messenger": subject and content are not empty; files may be."""

    EmailSubject: Annotated[str, Meta(min_length=1, max_length=255)]
    EmailContent: Filled
    EmailFile: str | list[Any] | dict[str, Any] | None = None


class SmsGroup(msgspec.Struct):
    """Variant A needs ``msgdata`` alone, variant B all."""

    msgdata: Filled
    equipment_id: str | int = ""
    equipment_name: Words = ""
    datetime: Words = ""


class AndroidBody(msgspec.Struct):
    """All are there and may be empty."""

    Ticker: Words
    Title: Words
    Text: Words
    Remark: Words


class AndroidGroup(msgspec.Struct, kw_only=True):
    """All but ``AfterOpen`` are there and may be empty; ``Url`` is when opening the app."""

    Body: AndroidBody
    AfterOpen: Words = "go_app"
    Url: Words
    DesText: Words


class Aps(msgspec.Struct):
    """All are there."""

    AlertTitle: Words
    AlertSubtitle: Words
    AlertBody: Words


class IosExtra(msgspec.Struct):
    """What the app is handed; ``type``: that of the request unless given."""

    id: int | str
    type: Words | UnsetType = UNSET


class IosGroup(msgspec.Struct):
    """An alert and what goes with it; all are there."""

    APS: Aps
    Extra: IosExtra
    DesText: Words


class TemplateEntry(msgspec.Struct):
    """One entry of an official-account message."""

    value: Words
    color: Words = ""


class TemplateData(msgspec.Struct, omit_defaults=True):
    """Keyed per template; which entries there are is the template's to say."""

    first: TemplateEntry | None = None
    keyword1: TemplateEntry | None = None
    keyword2: TemplateEntry | None = None
    keyword3: TemplateEntry | None = None
    keyword4: TemplateEntry | None = None
    remark: TemplateEntry | None = None


class Group(Parsed, Generic[S]):
    """A field that is a Struct ``shape``: a JSON object, or its text."""

    shape: ClassVar[type[msgspec.Struct]]
    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "object"}, {"type": "string"}],
        "description": "a JSON object, as such or as text; docs/messenger.md shows its attributes",
    }
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: S = value

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """The Struct; the error of one that doesn't fit names the attribute."""
        found = parse_json_text(value) if isinstance(value, str) else value
        try:
            return cls(msgspec.convert(found, cls.shape))
        except msgspec.ValidationError as error:
            path, reason = schema_fault(error, quotes=False)
            raise ValueError(say("in_field", field=path.lstrip("."), reason=reason) if path else reason) from None


class Email(Group[EmailGroup]):
    """The field ``email_group`` of e-mails."""

    shape = EmailGroup
    __slots__ = ()


class Sms(Group[SmsGroup]):
    """The field ``sms_group`` of SMS."""

    shape = SmsGroup
    __slots__ = ()


class Android(Group[AndroidGroup]):
    """The field ``android_msg_group`` of pushes."""

    shape = AndroidGroup
    __slots__ = ()


class Ios(Group[IosGroup]):
    """The field ``ios_msg_group`` of pushes."""

    shape = IosGroup
    __slots__ = ()


class Template(Group[TemplateData]):
    """The field ``data_msg`` of official-account messages."""

    shape = TemplateData
    __slots__ = ()


class Recipients(Parsed):
    """Whom a message is for; numbers count as their text, who is named twice gets it once."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "array", "items": {"type": ["string", "integer"]}}, {"type": "string"}],
        "description": f"an array, as such or as JSON text; at most {MOST_RECIPIENTS}",
    }
    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads an array of at most ``MOST_RECIPIENTS`` recipients, or one recipient."""
        found = parse_json_text(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "") else value
        found = [found] if isinstance(found, str) else [] if found is None else found
        if not isinstance(found, list):
            raise ValueError(say("expected_array_got", got=kind(found)))
        if len(found) > MOST_RECIPIENTS:
            raise ValueError(say("too_many_recipients", most=MOST_RECIPIENTS, got=len(found)))
        return cls(tuple(dict.fromkeys(cls._one(position, each) for position, each in enumerate(found, 1))))

    @classmethod
    def _one(cls, position: int, given: Any) -> str:
        if isinstance(given, bool) or not isinstance(given, str | int):
            raise ValueError(say("entry_expected_text", entry=position, got=kind(given)))
        name = str(given).strip()
        if not 0 < len(name) <= 320 or not name.isprintable():
            raise ValueError(say("entry_expected_printable", entry=position))
        cls.check(position, name)
        return name

    @classmethod
    def check(cls, position: int, name: str) -> None:
        """Raises ``ValueError`` for a recipient that can't be one; ``position`` counts from 1."""


class EmailAddresses(Recipients):
    """Recipients that are e-mail addresses."""

    __slots__ = ()

    @classmethod
    def check(cls, position: int, name: str) -> None:
        """Raises ``ValueError`` for what isn't ``name@host``."""
        if not _ADDRESS.fullmatch(name):
            raise ValueError(say("entry_no_address", entry=position, name=name[:64]))
