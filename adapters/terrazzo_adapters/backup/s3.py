"""``S3Target``: backups in an object storage that speaks S3, through boto3."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from terrazzo.ports.backup_target import PIECE_BYTES, Held, TargetFailed

_MISSING = {"404", "NoSuchKey", "NotFound"}


class S3Target:
    """``BackupTarget`` in a bucket, below a prefix, with the credentials that boto3 finds (environment, profile, role).

    Args:
        endpoint: of a storage that is not Amazon's; empty for theirs.
    """

    def __init__(self, bucket: str, prefix: str, *, endpoint: str = "", region: str = "") -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        settings = Config(retries={"max_attempts": 5, "mode": "standard"}, connect_timeout=10, read_timeout=60)
        with self._failing():
            self._s3: Any = boto3.client(
                "s3", endpoint_url=endpoint or None, region_name=region or None, config=settings
            )

    @property
    def place(self) -> str:
        """As ``backup.target`` names it."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def held(self, prefix: str) -> Iterator[Held]:
        """The objects whose names begin with ``prefix``."""
        with self._failing():
            pages = self._s3.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix):
                for each in page.get("Contents", ()):
                    yield Held(each["Key"].removeprefix(self._prefix), int(each["Size"]))

    def put(self, name: str, source: Path) -> None:
        """Uploads a file, in parts where it is large."""
        with self._failing():
            self._s3.upload_file(os.fspath(source), self._bucket, self._prefix + name)

    def put_bytes(self, name: str, content: bytes) -> None:
        """Uploads a content."""
        with self._failing():
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def pieces(self, name: str) -> Iterator[bytes]:
        """An object, a mebibyte at a time."""
        try:
            with self._failing():
                body = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"]
                try:
                    yield from body.iter_chunks(PIECE_BYTES)
                finally:
                    body.close()
        except TargetFailed as error:
            if _code(error.__cause__) in _MISSING:
                raise KeyError(name) from None
            raise

    def delete(self, name: str) -> None:
        """Deletes an object."""
        with self._failing():
            self._s3.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, OSError, boto3.exceptions.Boto3Error) as error:
            raise TargetFailed(f"{self.place}: {error}") from error


def _code(error: BaseException | None) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
