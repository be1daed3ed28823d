"""Owners: a message stays with the clients of whoever it belongs to."""

from __future__ import annotations

EVERYBODY = "*"
"""The owner of what is for the clients of all owners: the broker's own messages."""


def hears(receiver: str, owner: str) -> bool:
    """Whether messages of ``owner`` are for the clients of ``receiver``."""
    return receiver == owner or EVERYBODY in (receiver, owner)
