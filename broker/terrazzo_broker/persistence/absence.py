"""A client of a persistent session that is away: what waits for it is kept on disk."""

from __future__ import annotations

from collections.abc import Iterable

from ..delivery.encoder import LONG_BYTES
from ..delivery.session import Session
from ..message import ApplicationMessage, StoredMessage
from ..scheduling.turns import Steps
from .payloads import let_go


class Absence:
    """One absence of a session's client. While it lasts, stored messages leave the session only by its end."""

    __slots__ = ("_session", "is_over")

    def __init__(self, session: Session) -> None:
        self._session = session
        self.is_over = False

    def letting_go(self, messages: Iterable[ApplicationMessage | None], *, are_sent: bool) -> Steps[None]:
        """Lets go of long payloads of the session's messages, whose records are committed by now.

        ``are_sent``: they are inflight, where only those with payloads of more than ``LONG_BYTES`` are counted.
        """
        share = self._session.share
        for message in messages:
            if self.is_over:
                return
            if isinstance(message, StoredMessage) and not message.disk_bytes:
                let_go(message)
                if not are_sent or message.disk_bytes > LONG_BYTES:
                    share.disk_bytes += message.disk_bytes
            yield
