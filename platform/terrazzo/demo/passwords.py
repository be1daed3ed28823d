"""Passwords of the demo: random, in a file of the data folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from terrazzo.crypto.key_file import replace_private
from terrazzo.demo.site import SPARE, TERMINALS, USERS

PASSWORD_FILE = "demo-passwords"
_SECRET_BYTES = 8  # 16 digits: a pin has no more characters


class DemoPasswords:
    """Passwords of the demo's users and pins of its terminals: random, in a file of lines ``<name> <password>``."""

    def __init__(self, file: Path, passwords: dict[str, str]) -> None:
        self.file = file
        self._passwords = passwords

    @classmethod
    def open(cls, data_dir: Path) -> DemoPasswords:
        """Reads ``<data>/demo-passwords``; makes it, or the lines that are missing, with mode 0600."""
        file = data_dir.resolve() / PASSWORD_FILE
        lines = file.read_text().splitlines() if file.exists() else []
        known = {name: password for name, _, password in (line.partition(" ") for line in lines) if password}
        names = (*USERS, *(terminal.uid for terminal in TERMINALS), SPARE)
        passwords = {name: known.get(name) or secrets.token_hex(_SECRET_BYTES) for name in names}
        if passwords != known:
            replace_private(file, "".join(f"{name} {password}\n" for name, password in passwords.items()))
        return cls(file, passwords)

    def of(self, name: str) -> str:
        """The password of a user, or the pin of a terminal."""
        return self._passwords[name]
