"""Makes the projects and their channels from the configuration's section ``messenger``."""

from __future__ import annotations

from collections.abc import Callable

from terrazzo.config.messenger import EmailSection, MessengerProjectSection, MessengerSection, providers_of
from terrazzo.messenger.channels import EmailChannel, HttpChannel
from terrazzo.messenger.message import MessageChannel
from terrazzo.messenger.projects import Project, Projects
from terrazzo.ports.providers import HttpCaller, Mailer


def build_projects(
    section: MessengerSection, *, mailer_of: Callable[[EmailSection], Mailer], caller: HttpCaller
) -> Projects:
    """All configured projects; e-mail goes out by ``mailer_of`` a section, everything else by ``caller``."""
    return Projects(Project(each, _channels(each, mailer_of, caller)) for each in section.project)


def _channels(
    section: MessengerProjectSection, mailer_of: Callable[[EmailSection], Mailer], caller: HttpCaller
) -> dict[str, MessageChannel]:
    channels: dict[str, MessageChannel] = {name: HttpChannel(caller, each) for name, each in providers_of(section)}
    if section.email is not None:
        channels["email"] = EmailChannel(mailer_of(section.email), section.email)
    return channels
