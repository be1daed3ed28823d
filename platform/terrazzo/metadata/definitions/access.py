"""Definitions of what users log in with, beside their passwords."""

from __future__ import annotations

from terrazzo.database.entity import define
from terrazzo.database.field import flag, moment, number, text

ROLES = ("viewer", "operator", "admin")

API_KEY = define(
    "api_key",
    text("name", 64, required=True),
    text("description", 255),
    text("role", 16, default="viewer", choices=ROLES),
    flag("is_super"),
    text("prefix", 16, read_only=True),  # the beginning of the key, by which people tell keys apart
    text("key_hash", 64, required=True, internal=True),  # SHA-256 in hex: the key is random and needs no slower one
    number("user_id", read_only=True),  # whose rights it has; no reference: a user's keys go with the user
    text("username", 64, read_only=True),
    moment("expires", read_only=True, required=True),
    moment("last_used", read_only=True),
)
