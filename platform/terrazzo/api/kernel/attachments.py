"""The files of a form, as a field of a request."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, ClassVar, Self

from terrazzo.api.kernel.fields import Parsed
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say

MOST_FILES = 50  # of one form, and of one e-mail


class Attachments(Parsed):
    """The files of a form. They are read from its parts and nowhere else."""

    schema: ClassVar[dict[str, Any]] = {
        "type": "null",
        "description": "files of the form (`multipart/form-data`); nothing in JSON",
    }
    __slots__ = ("files",)

    def __init__(self, files: tuple[Attachment, ...] = ()) -> None:
        self.files = files

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Takes what ``Components`` put there; JSON, which can't carry files, may only say null."""
        if isinstance(value, cls):
            return value
        if value is None:
            return cls()
        raise ValueError(say("expected_form_with_files"))
