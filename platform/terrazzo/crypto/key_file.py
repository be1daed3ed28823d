"""Files of mode 0600 in the data folder: keys, and the first password."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def load_key(path: Path, *, size: int) -> bytes:
    """The key of ``size`` bytes that ``path`` holds in hexadecimal; made at random if there is no file.

    Raises:
        ValueError: the file holds something else.
        OSError: it can't be read or written.
    """
    if not path.exists():
        write_private(path, secrets.token_hex(size) + "\n")
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != size:
        raise ValueError(f"{path}: expected {2 * size} hexadecimal digits; restore the file from a backup")
    return key


def write_private(path: Path, text: str) -> None:
    """Writes a file of mode 0600 atomically, unless another process has just written it: then that one's file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass  # the other process's file stands
    finally:
        draft.unlink()
