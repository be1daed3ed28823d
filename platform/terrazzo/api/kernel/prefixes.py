"""The prefixes of the component interfaces: the keys of the configuration's section ``api`` (``api.grid_base`` ...)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from terrazzo.config.sections import ApiSection

PREFIXES: Mapping[str, str] = msgspec.structs.asdict(ApiSection())
"""Key to the prefix unless configured otherwise, with which the paths of the rows begin."""


def configured_path(path: str, prefixes: Mapping[str, str]) -> str:
    """A documented path below the configured prefix of its component; one that begins with no prefix as it is.

    Args:
        prefixes: key to prefix, where it isn't the default.
    """
    for key, default in PREFIXES.items():
        if path.startswith(f"{default}/"):
            return prefixes.get(key, default) + path.removeprefix(default)
    return path
