"""The repository of terminal configurations: a decoder that they name has to be allowed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from terrazzo.database.port import Row
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import CONFIGURATION
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say


class ConfigurationRepository(EntityRepository):
    """The configurations. ``decoders``: what ``ingest.decoders`` allows."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(CONFIGURATION, **parts)
        self.decoders: Collection[str] = ()

    def check_draft(self, draft: Draft, before: Row | None) -> None:
        """Refuses a decoder that the instance doesn't allow, unless the record has it already."""
        decoder = _decoder(draft.get("payload"))
        if decoder and decoder not in self.decoders and (before is None or _decoder(before["payload"]) != decoder):
            raise BadParameter("payload", say("decoder_unknown", decoder=decoder))


def _decoder(payload: Any) -> str:
    return str((payload or {}).get("decoder", ""))
