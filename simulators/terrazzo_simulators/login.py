"""The passwords that a terminal sends in CONNECT."""

from __future__ import annotations

import hashlib
import hmac

from .spec import TerminalSpec


def auto_password(*, uid: str, pin: str, unix_s: int) -> str:
    """The password of mode ``auto``: ``<unix_s>.<hex HMAC-SHA256(key = pin, message = uid + "." + unix_s)>``."""
    digest = hmac.new(pin.encode(), f"{uid}.{unix_s}".encode(), hashlib.sha256).hexdigest()
    return f"{unix_s}.{digest}"


class Credentials:
    """The passwords of one terminal, a new one for each CONNECT."""

    def __init__(self, spec: TerminalSpec) -> None:
        self._spec = spec
        self._last_s = 0

    def password(self, time_s: float) -> str:
        """The password to send now, empty in mode ``cert``. In mode ``auto`` each has another second, because a replay
        is refused."""
        if self._spec.mode == "cert":
            return ""
        if self._spec.mode == "pwd":
            return self._spec.pin
        self._last_s = max(int(time_s), self._last_s + 1)
        return auto_password(uid=self._spec.uid, pin=self._spec.pin, unix_s=self._last_s)
