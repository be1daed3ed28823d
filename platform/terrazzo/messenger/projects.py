"""The messenger's projects, as configured: who may use them, and what they can send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from terrazzo.config.messenger import HttpSection, MessengerProjectSection, SmsSection
from terrazzo.errors import BadParameter
from terrazzo.messenger.message import MessageChannel
from terrazzo.reasons import say


class Project(msgspec.Struct, frozen=True):
    """One project: its section of the configuration, and its channels by name."""

    section: MessengerProjectSection
    channels: Mapping[str, MessageChannel]

    @property
    def sms_variant(self) -> str:
        """The variant of the project's SMS provider, which decides the attributes that an ``sms_group`` must have."""
        sms = self.section.sms
        return sms.variant if isinstance(sms, SmsSection) else "a"

    def is_single(self, channel: str) -> bool:
        """Whether the channel's provider takes one recipient a request, so that each gets a message of its own."""
        section = getattr(self.section, channel, None)
        return isinstance(section, HttpSection) and section.per_recipient


class Projects:
    """All configured projects, by id."""

    def __init__(self, projects: Iterable[Project] = ()) -> None:
        self._projects = {project.section.id: project for project in projects}

    def all(self) -> Iterable[Project]:
        """Every project."""
        return self._projects.values()

    def get(self, number: int) -> Project | None:
        """The project of this id, whichever company it belongs to."""
        return self._projects.get(number)

    def find(self, company_id: int, number: int, channel: str) -> Project:
        """A project that a company may use and that has this channel.

        Raises:
            BadParameter: names the field.
        """
        project = self._projects.get(number)
        if project is None or project.section.company_id not in (0, company_id):
            raise BadParameter("project_id", say("no_messenger_project", project=number))
        if channel not in project.channels:
            raise BadParameter("project_id", say("project_sends_no", project=number, channel=channel))
        return project
