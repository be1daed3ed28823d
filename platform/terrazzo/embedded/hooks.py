"""The platform's side of the embedded broker: its hooks, and what follows when a record changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.embedded.bridges import EmbeddedBridges
from terrazzo.embedded.bus import ADMINISTRATIVE_ACTION, EmbeddedBus
from terrazzo.embedded.shared_logins import SharedLogins
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import Seals, make_tag
from terrazzo.loop_pauses import Steps, at_once
from terrazzo.terminals.acl import TERMINAL_TOPICS, TerminalAcl, is_sys_filter, terminal_named
from terrazzo.terminals.activation import Activations
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.login import TerminalLogin
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.terminals.provisioning import ClaimLink, Provisioning
from terrazzo_broker.broker import Broker
from terrazzo_broker.hooks import Accept, Batch, Client, ConnectRequest, FormerOwners, PublishGrant, Verdict


class PlatformHooks:
    """Terminals log in, are held to their permissions, and have their reports stored.

    ``on_ready`` is called with the uid of a terminal that has subscribed. ``hears_sys`` says of which companies
    terminals may have the broker's figures (``$SYS``), where their records grant that. ``shared``: what follows a login
    where there are several nodes that terminals connect to.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        login: TerminalLogin,
        ingest: IngestPipeline,
        presence: PresenceRegister,
        seals: Seals,
        bus: EmbeddedBus,
        activations: Activations,
        provisioning: Provisioning,
        on_ready: Callable[[str], None],
        bridges: EmbeddedBridges | None = None,
        hears_sys: Callable[[int], bool] = lambda company_id: False,
        shared: SharedLogins | None = None,
    ) -> None:
        self._registry = registry
        self._login = login
        self._ingest = ingest
        self._presence = presence
        self._seals = seals
        self._bus = bus
        self._bridges = bridges
        self._activations = activations
        self._provisioning = provisioning
        self._on_ready = on_ready
        self._hears_sys = hears_sys
        self._shared = shared
        self._routers: set[str] = set()  # connected terminals that may speak for others
        registry.terminal_changes.listen(self._on_record)
        registry.sharing_changes.listen(self._on_sharing)

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Decides on a CONNECT or a re-authentication by the terminal's record."""
        verdict = await self._login.authenticate(request)
        if not self._seals.is_loaded and isinstance(verdict, Accept):
            terminal = self._registry.terminal(request.client_id)
            if terminal is not None and terminal.encryption:
                await self._seals.load()
        return verdict if self._shared is None else await self._shared.admit(request, verdict)

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """Reports only, under the full topic; stored before they are acknowledged."""
        acl = self._acl(client)
        report = None if acl is None else acl.may_publish(topic)
        if report is None:
            return None
        tag = make_tag(report, trace=self._presence.trace(report.owner.uid), seal=self._seals.of(report.owner))
        return PublishGrant(report.topic, durable=True, tag=tag)

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """Whether the terminal's record allows the topic filter."""
        if isinstance(client.identity, ClaimLink):
            return topic_filter == f"p2p/{client.client_id}"
        acl = self._acl(client)
        if acl is None or not acl.may_subscribe(topic_filter):
            return False
        return not is_sys_filter(topic_filter) or self._may_hear_sys(client.client_id)

    def may_receive(self, client_id: str, topic: str) -> bool:
        """What names a terminal of another company stays from a terminal, whoever sent it; so do figures of all."""
        receiver = self._registry.terminal(client_id)
        if receiver is None:
            return False
        if topic.startswith("$SYS/"):
            return self._hears_sys(receiver.company_id)
        named = terminal_named(self._registry, topic)
        return named is None or named.company_id == receiver.company_id

    def _may_hear_sys(self, client_id: str) -> bool:
        terminal = self._registry.terminal(client_id)
        return terminal is not None and self._hears_sys(terminal.company_id)

    def former_owners(self) -> FormerOwners:
        """Whose stored messages and sessions are of which that isn't kept: the company's of the terminal they name."""
        terminal = self._registry.terminal
        return FormerOwners(
            of_topic=lambda topic: _owner(terminal_named(self._registry, topic)),
            of_client=lambda client_id: _owner(terminal(client_id)),
        )

    def take(self, batch: Batch) -> None:
        """To the store; answered when bridges have on disk what they got of it, and other nodes have theirs, too."""
        for holder in self._bus.holders:
            batch = holder.hold(batch)
        self._ingest.take(batch if self._bridges is None else self._bridges.hold(batch))

    def on_connected(self, client: Client) -> None:
        """Notes who is there."""
        if isinstance(client.identity, ClaimLink):
            self._provisioning.on_connected(client)
            return
        link: TerminalLink = client.identity
        self._presence.on_connected(client)
        self._activations.note(link.terminal, client.connected_us)
        if link.terminal.is_route:
            self._routers.add(client.client_id)
        self.note_connected(client)
        if self._shared is not None and not self._shared.holds(client.client_id):
            self._bus.end_taken_over(client.client_id)  # another node has taken it over in the meantime

    def note_connected(self, client: Client) -> None:
        """Is told of each terminal that has connected; nothing is done here."""

    def on_disconnected(self, client: Client, reason: str) -> None:
        """Notes who is gone, and why."""
        if isinstance(client.identity, ClaimLink):
            self._provisioning.on_disconnected(client)
            return
        self._presence.on_disconnected(client, reason)
        if self._presence.client(client.client_id) is None:  # not taken over
            self._routers.discard(client.client_id)
        if self._registry.terminal(client.client_id) is None:
            self._presence.forget(client.client_id)

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Commands may be waiting; who claims is told its pin."""
        if isinstance(client.identity, ClaimLink):
            self._provisioning.on_subscribed(client, filters)
            return
        self._on_ready(client.client_id)

    def _acl(self, client: Client) -> TerminalAcl | None:
        """By the record at login; a will may go out when there is a later one, or after a restart."""
        if isinstance(client.identity, ClaimLink):
            return None  # it may do nothing but be told
        link: TerminalLink | None = client.identity
        current = self._registry.terminal(client.client_id)
        if current is None or not current.is_admitted or client.owner != current.owner:
            return None
        return link.acl if link is not None and current is link.terminal else TerminalAcl(current, self._registry)

    def _on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        """Whoever is connected under a changed record has to log in anew; a deleted one leaves nothing behind."""
        if before is None or not _is_changed(before, after):
            return
        self._forget_grants_of_routers(before.uid)
        if after is not None and (after.access, after.topic) == (before.access, before.topic):
            self._bus.disconnect(before.uid, _why_ended(after))
        else:
            self._bus.end(
                before.uid, _why_ended(after)
            )  # with its session go subscriptions that may no longer be allowed
        if after is None:
            self._bus.end_retained(before)
            self._login.forget(before)
            self._presence.forget(before.uid, before.id)
            self._seals.forget(before.uid)
        elif (after.id, after.mode, after.username, after.pin) != (before.id, before.mode, before.username, before.pin):
            self._login.forget_places(before)

    def _on_sharing(self, uids: frozenset[str]) -> None:
        """An object was changed that lists these terminals, or did: only to its routers it makes a difference."""
        for router in self._routers & uids:
            self._bus.forget_grants(router)

    def _forget_grants_of_routers(self, uid: str) -> None:
        """What a router may publish depends on the records of others."""
        for router in self._routers:
            if router == uid or self._registry.share_object(router, uid):
                self._bus.forget_grants(router)


def end_leftovers(broker: Broker, registry: Registry) -> None:
    """Ends sessions and retained messages of terminals that were deleted while this platform wasn't there."""
    for session in list(broker.sessions.values()):
        if _owner(registry.terminal(session.client_id)) != session.owner:
            broker.disconnect(session.client_id, ADMINISTRATIVE_ACTION, end_session=True)
    at_once(ending_retained_leftovers(broker, registry, broker.end_retained))


def ending_retained_leftovers(broker: Broker, registry: Registry, end: Callable[[str, str], None]) -> Steps[None]:
    """Ends (by owner and topic) retained messages of terminals that are not there any more."""
    for kind in TERMINAL_TOPICS:
        for owner, uid in list(broker.retained.levels_below(kind)):
            if _owner(registry.terminal(uid)) != owner:
                end(owner, f"{kind}/{uid}")
            yield


def _owner(terminal: Terminal | None) -> str:
    return "" if terminal is None else terminal.owner


def _why_ended(after: Terminal | None) -> str:
    """What a connected terminal is told whose record has changed."""
    if after is None:
        return "the terminal was deleted"
    if not after.company_is_available:
        return "the terminal's company was closed"
    return "the terminal's record was changed" if after.is_available else "the terminal was disabled"


def _is_changed(before: Terminal, after: Terminal | None) -> bool:
    """The time of the first login is no change: it must not end the connection that made it."""
    return after is None or msgspec.structs.replace(before, activated_us=after.activated_us) != after
