"""Who may log in at a broker that is not this platform's own and asks it, and what for: terminals, by their records.

Logins go through ``TerminalLogin`` as those at the embedded broker do, with the same limits, refusals and answers. Of
topics it allows less: another broker neither puts a terminal's own uid into the topics that leave it out, nor keeps
companies apart.
"""

from __future__ import annotations

import msgspec
from mqtt5 import ConnAckReasonCode

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.terminals.acl import TERMINAL_TOPICS, TerminalAcl, terminal_named
from terrazzo.terminals.activation import Activations
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.login import TerminalLogin
from terrazzo.times import now_us
from terrazzo_broker.hooks import Accept, ConnectRequest
from terrazzo_broker.refusals import Cause, OnRefused, Refusal

_NOT_AUTHORIZED = int(ConnAckReasonCode.NOT_AUTHORIZED)


class RemoteAccessStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    logins_allowed: int = 0
    logins_denied: int = 0
    topics_allowed: int = 0
    topics_denied: int = 0
    askers_refused: int = 0  # no token, another one, or an address that may not ask
    malformed: int = 0  # questions that can't be read; denied


class RemoteClient(msgspec.Struct, frozen=True):
    """A client of the other broker, as that says; ``username``: None where it doesn't say."""

    client_id: str
    username: str | None = None
    address: str = ""


class RemoteAccess:
    """Answers another broker's questions.

    Args:
        on_refused: is told of topics that were refused.
    """

    def __init__(
        self, registry: Registry, login: TerminalLogin, *, activations: Activations, on_refused: OnRefused
    ) -> None:
        self.stats = RemoteAccessStats()
        self._registry = registry
        self._login = login
        self._activations = activations
        self._on_refused = on_refused

    async def may_connect(self, request: ConnectRequest) -> bool:
        """Whether a client may log in, by user name and password; counted and limited as at the embedded broker."""
        verdict = await self._login.authenticate(request)
        if isinstance(verdict, Accept) and isinstance(verdict.identity, TerminalLink):
            self.stats.logins_allowed += 1
            self._activations.note(verdict.identity.terminal, now_us())
            return True
        self.stats.logins_denied += 1
        return False

    def may_publish(self, client: RemoteClient, topic: str) -> bool:
        """Whether a terminal may publish on a topic, which names whose report it is."""
        terminal = self.terminal_of(client)
        report = None if terminal is None else TerminalAcl(terminal, self._registry).may_publish(topic)
        is_allowed = report is not None and report.topic == topic
        return self._tell(client, terminal, Cause.PUBLISH_NOT_ALLOWED, topic, is_allowed=is_allowed)

    def may_subscribe(self, client: RemoteClient, topic_filter: str) -> bool:
        """Whether a terminal may have a topic filter, or be sent a topic."""
        terminal = self.terminal_of(client)
        is_allowed = (
            terminal is not None
            and TerminalAcl(terminal, self._registry).may_subscribe(topic_filter)
            and self._is_of_own_company(terminal, topic_filter)
        )
        return self._tell(client, terminal, Cause.SUBSCRIBE_NOT_ALLOWED, topic_filter, is_allowed=is_allowed)

    def terminal_of(self, client: RemoteClient) -> Terminal | None:
        """The terminal that a client is, while it is admitted and the user name, where there is one, is its own."""
        terminal = self._registry.terminal(client.client_id)
        if terminal is None or not terminal.is_admitted or client.username not in (None, terminal.username):
            return None
        return terminal

    def _is_of_own_company(self, terminal: Terminal, topic_filter: str) -> bool:
        """Whether no topic that the filter matches names another company's terminal: there nobody else would look."""
        if topic_filter.startswith("$share/"):
            topic_filter = [*topic_filter.split("/", 2), ""][2]
        first = topic_filter.partition("/")[0]
        if first in ("+", "#") or first.startswith("$"):
            return False
        if first not in TERMINAL_TOPICS:
            return True
        named = terminal_named(self._registry, topic_filter)  # no wildcard is a uid
        return named is not None and named.company_id == terminal.company_id

    def _tell(
        self, client: RemoteClient, terminal: Terminal | None, cause: Cause, detail: str, *, is_allowed: bool
    ) -> bool:
        if is_allowed:
            self.stats.topics_allowed += 1
            return True
        self.stats.topics_denied += 1
        owner = None if terminal is None else terminal.owner
        self._on_refused(Refusal(cause, client.address, client.client_id, owner, _NOT_AUTHORIZED, detail))
        return False
