"""The configuration's section ``[backup]``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.config.values import ConfigError

S3 = "s3://"


class BackupSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[backup]``: where backups are kept, and how often they are made."""

    target: str = ""
    every_hours: Annotated[float, Meta(ge=0, le=8_760)] = 0.0
    keep: Annotated[int, Meta(ge=1, le=10_000)] = 7
    passphrase_file: str = ""
    s3_endpoint: Annotated[str, Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    s3_region: str = ""


def check_backup(section: BackupSection) -> None:
    """Checks keys against one another.

    Raises:
        ConfigError: naming the key.
    """
    if section.every_hours and not section.target:
        raise ConfigError("backup.every_hours: needs backup.target, a folder or s3://bucket/prefix")
    if section.target.startswith(S3) and not section.target.removeprefix(S3).split("/")[0]:
        raise ConfigError(f"backup.target: expected s3://bucket/prefix, got {section.target!r}")
