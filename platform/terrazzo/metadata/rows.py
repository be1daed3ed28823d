"""Between the rows of a table and the rows that callers see: JSON decoded, secrets in the clear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from terrazzo.metadata.entity import Entity
from terrazzo.metadata.field import Kind
from terrazzo.metadata.secrets import Secrets


class RowCodec:
    """Encodes and decodes the columns of one entity."""

    def __init__(self, entity: Entity, secrets: Secrets) -> None:
        fields = entity.fields.values()
        self._json = [field.name for field in fields if field.kind is Kind.JSON]
        self._secret = {
            field.name: f"{entity.name}.{field.name}" for field in fields if field.kind is Kind.SECRET
        }  # column -> what its secrets are bound to
        self._internal = [field.name for field in fields if field.internal]
        self._secrets = secrets

    def encode(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What is stored."""
        stored = dict(values)
        for name in self._json:
            if stored.get(name) is not None:
                stored[name] = msgspec.json.encode(stored[name]).decode()
        for name, place in self._secret.items():
            if name in stored:
                stored[name] = self._secrets.seal(stored[name], place)
        return stored

    def decode(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """A row with the internal columns.

        Raises:
            SecretUnreadable: the key at hand is another one.
        """
        row = dict(stored)
        for name in self._json:
            if row[name] is not None:
                row[name] = msgspec.json.decode(row[name])
        for name, place in self._secret.items():
            row[name] = self._secrets.unseal(row[name], place)
        return row

    def public(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row without the internal columns."""
        shown = dict(row)
        for name in self._internal:
            shown.pop(name, None)
        return shown
