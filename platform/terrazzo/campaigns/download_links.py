"""Addresses under which terminals fetch stored files: signed for one terminal, good until they expire."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple, Protocol
from urllib.parse import quote, urlencode

from terrazzo.domain.command import FirmwareLink
from terrazzo.domain.stored_file import StoredFile
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import BadParameter, NotFound, NotPermitted
from terrazzo.listeners import Listeners
from terrazzo.reasons import say
from terrazzo.times import now_us

FIRMWARE_PATH = "/firmware/{company_id}/{file}/{name}"
KEY_FILE = "firmware-key"
KEY_BYTES = 32
LINK_GRACE_S = 86_400  # for a download that begins when its command had nearly expired

_STORED = re.compile(r"(?:/[^?#]*/)?([0-9a-f]{32})")  # a file's uid, or a path on this platform that ends in one


class Files(Protocol):
    """The stored files, as far as links need them; ``terrazzo.files.library.FileLibrary`` is one."""

    async def open(self, company_id: int, uid: str) -> StoredFile:
        """A company's file by its uid (32 hexadecimal digits). Raises NotFound."""


class Ticket(NamedTuple):
    """The signed fields of a download URL; ``expires_s`` in unix seconds, ``file`` is the stored file's uid."""

    company_id: int
    file: str
    name: str
    terminal_id: str
    expires_s: int


class SignedLinks:
    """Makes and checks signed download URLs. Implements ``commands.order.FirmwareLinks``.

    ``downloads`` tells of each download that begins: the terminal's uid, the file's uid.

    Args:
        files: where stored files are opened.
        key: of the HMAC, ``KEY_BYTES`` long.
        base_url: URL at which terminals reach the HTTP port.
        lifetime_s: how long a URL is valid: as long as a command may wait, and then for the download.
        terminal: the terminal with a uid, while there is one.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        files: Files,
        *,
        key: bytes,
        base_url: str,
        lifetime_s: float,
        terminal: Callable[[str], Terminal | None],
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._files = files
        self._key = key
        self.base_url = base_url
        self._lifetime_s = lifetime_s
        self._terminal = terminal
        self._clock = clock
        self.downloads: Listeners[str, str] = Listeners("downloads")

    async def link(self, terminal: Terminal, file: str) -> FirmwareLink:
        """A signed URL for a stored file, named by its uid or a path that ends in it; any other text is the URL itself.

        Raises:
            BadParameter: the terminal's company has no such file.
        """
        stored = _STORED.fullmatch(file.strip())
        if stored is None:
            return FirmwareLink(file)
        try:
            found = await self._files.open(terminal.company_id, stored[1])
        except NotFound:
            raise BadParameter("value", say("no_such_firmware", file=stored[1])) from None
        expires_s = int(self._clock() / 1e6 + self._lifetime_s)
        ticket = Ticket(terminal.company_id, stored[1], found.name, terminal.uid, expires_s)
        path = f"/firmware/{ticket.company_id}/{ticket.file}/{quote(ticket.name, safe='')}"
        query = {"terminal": ticket.terminal_id, "expires": ticket.expires_s, "signature": self.sign(ticket)}
        url = f"{self.base_url.rstrip('/')}{path}?{urlencode(query)}"
        return FirmwareLink(url, found.size, found.etag)

    def sign(self, ticket: Ticket) -> str:
        """HMAC-SHA256 over all fields of the URL, as 64 hexadecimal digits."""
        message = "\0".join(map(str, ticket)).encode("utf-8", "surrogatepass")
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    async def redeem(self, ticket: Ticket, signature: str) -> StoredFile:
        """The file of a download URL, once its signature and expiry are checked; tells ``downloads``.

        Raises:
            NotPermitted: the signature is wrong, the address has expired, or its terminal is let in no more.
            NotFound: the file has been deleted.
        """
        if not hmac.compare_digest(self.sign(ticket).encode(), signature.encode("utf-8", "surrogatepass")):
            raise NotPermitted(say("signature_wrong"))
        if ticket.expires_s * 1_000_000 < self._clock():
            raise NotPermitted(say("address_expired"))
        terminal = self._terminal(ticket.terminal_id)
        if terminal is None or not terminal.is_admitted or terminal.company_id != ticket.company_id:
            raise NotPermitted(say("address_of_former_terminal"))
        stored = await self._files.open(ticket.company_id, ticket.file)
        self.downloads.tell(ticket.terminal_id, ticket.file)
        return stored
