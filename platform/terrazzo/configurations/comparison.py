"""A configuration as it is wanted, and what of it a terminal reports otherwise. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from terrazzo.domain.payload import MAX_DEPTH

VERSION = "Version"
"""The point of a report that echoes the version of the configuration that the terminal has."""

MOST_DIFFERENCES = 50
"""That are kept of a report."""

_VALUE_CHARS = 200  # of a text in a difference


class Difference(msgspec.Struct, frozen=True):
    """A key on which wanted and reported differ. ``reported`` None: null, or the key isn't there at all."""

    key: str
    wanted: Any
    reported: Any


class WantedConfiguration(NamedTuple):
    """What terminals of a configuration ought to have.

    Attributes:
        version: SHA-256 of the canonical JSON of ``config_script``, in hexadecimal.
        command: the payload on ``p2p/<uid>``.
        leaves: the values by dotted name, without arrays and what is too deep: the version alone tells of those.
        has_arrays: whether there is something that only the version tells of.
    """

    version: str
    command: bytes
    leaves: Mapping[str, Any]
    has_arrays: bool

    @classmethod
    def of(cls, config: Mapping[str, Any] | Sequence[Any]) -> WantedConfiguration:
        """Of a parsed ``config_script``."""
        leaves: dict[str, Any] = {}
        has_arrays = _add_leaves(config, "", leaves, 1) if isinstance(config, dict) else True
        version = hashlib.sha256(canonical_json(config)).hexdigest()
        command = msgspec.json.encode({"Act": "Config", VERSION: version, "Config": config})
        return cls(version, command, leaves, has_arrays)


def canonical_json(value: Any) -> bytes:
    """JSON in UTF-8 with sorted keys and nothing between them; numbers as short as they can be read back."""
    return msgspec.json.encode(value, order="deterministic")


def differences(wanted: WantedConfiguration, points: Mapping[str, Any]) -> list[Difference]:
    """What a report says otherwise, the first ``MOST_DIFFERENCES``; empty: it has what is wanted.

    What isn't wanted doesn't count. A report with a wrong version, or with none where there are arrays, differs in it.

    Args:
        wanted: what ought to be.
        points: of the report, flat.
    """
    found = [
        Difference(key, _shown(value), _shown(points.get(key)))
        for key, value in wanted.leaves.items()
        if not _equal(value, points.get(key))
    ]
    reported = points.get(VERSION)
    if reported != wanted.version and (reported is not None or wanted.has_arrays):
        found.append(Difference(VERSION, wanted.version, _shown(reported)))
    return found[:MOST_DIFFERENCES]


def _add_leaves(value: Mapping[str, Any], prefix: str, leaves: dict[str, Any], depth: int) -> bool:
    """Whether there are arrays, or objects deeper than a report may have them."""
    has_arrays = False
    for key, each in value.items():
        if isinstance(each, dict) and depth < MAX_DEPTH:
            has_arrays |= _add_leaves(each, f"{prefix}{key}.", leaves, depth + 1)
        elif isinstance(each, dict | list):
            has_arrays = True
        else:
            leaves[prefix + key] = each
    return has_arrays


def _equal(wanted: Any, reported: Any) -> bool:
    """Whether two values of JSON are the same: 1 and 1.0 are, 1 and true are not."""
    return wanted == reported and isinstance(wanted, bool) == isinstance(reported, bool)


def _shown(value: Any) -> Any:
    return value[:_VALUE_CHARS] if isinstance(value, str) else value
