"""``Terminal``: a terminal's record, as the broker's hooks and ingest use it."""

from __future__ import annotations

import msgspec

from terrazzo.domain.payloads.form import PayloadForm


class OutOfService(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal is out of service, as somebody works on it: nothing about it alarms. Times in UTC microseconds."""

    terminal_id: int  # the record's id
    company_id: int
    since_us: int
    until_us: int  # it is back by itself
    reason: str
    user_id: int
    username: str  # as it was


class Terminal(msgspec.Struct, frozen=True):
    """One terminal with its secrets in the clear; it lives in memory only (section 1 "Terminal")."""

    id: int
    uid: str  # the MQTT client id; up to 64 characters, none of / + # or a control character
    name: str
    company_id: int
    type: str
    mode: str  # pwd | auto | cert
    username: str
    pin: str
    access: str = "all"  # all | pub | sub
    topic: str = "all"  # all | pub:r,a,v,p,i,n;sub:g/#
    is_route: bool = False
    session_expiry_s: int = 0  # 0: the client's own
    keep_alive_s: int = 0  # 0: the client's own
    encryption: bool = False
    dixie: bool = False  # SCRAM only
    rsa_privatekey: str = ""
    is_available: bool = True
    config_id: int | None = None
    activated_us: int | None = None
    company_is_available: bool = True
    series: str = ""  # the name of its series; empty: the uid
    form: PayloadForm | None = None  # how its configuration says that payloads are read; None: as objects of points

    @property
    def series_name(self) -> str:
        """The name that its series bear (``terrazzo.domain.report_topic``)."""
        return self.series or self.uid

    @property
    def is_admitted(self) -> bool:
        """Whether it may log in, report and be commanded: neither it nor its company is closed."""
        return self.is_available and self.company_is_available

    @property
    def owner(self) -> str:
        """Whose its messages are: the company's id, as the broker names owners."""
        return str(self.company_id)
