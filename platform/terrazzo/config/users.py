"""``[users]``: how users get at their accounts again (docs/configuration.md)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.config.messenger import MessengerSection
from terrazzo.config.values import ConfigError


class UsersSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[users]``: passwords that are reset by mail."""

    reset_project: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    reset_minutes: Annotated[int, Meta(ge=1, le=1_440)] = 30
    reset_url: Annotated[str, Meta(pattern=r"^(https?://[^\s#]+)?$")] = ""


def check_users(section: UsersSection, messenger: MessengerSection) -> None:
    """Checks that the project that sends mail for resets is there and does.

    Raises:
        ConfigError: names the key.
    """
    if not section.reset_project:
        return
    project = next((each for each in messenger.project if each.id == section.reset_project), None)
    if project is None:
        raise ConfigError(f"users.reset_project: there is no messenger.project of the id {section.reset_project}")
    if project.email is None:
        raise ConfigError(f"users.reset_project: project {section.reset_project} has no section email")
