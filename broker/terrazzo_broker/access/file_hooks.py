"""The hooks of a standalone broker with users or access rights from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mqtt5 import ConnAckReasonCode

from ..hooks import Accept, Batch, Client, ConnectRequest, PublishGrant, Refuse, Verdict
from .acl_file import Access, Acl, read_acl
from .password_check import PasswordCheck, TooManyChecks
from .password_file import Passwords, read_passwords

_KEPT = 1_000  # user names of clients without a session that may be kept
_NOT_AUTHORIZED = 0x87


def _named(username: str | None) -> str | None:
    """The user that a client names; an empty user name names none, as with Mosquitto."""
    return username or None


class AskedBroker(Protocol):
    """The broker, as the hooks change it when rights change."""

    @property
    def sessions(self) -> Mapping[str, object]:
        """The sessions by client id."""
        ...

    def clients(self) -> Iterable[Client]:
        """All connected clients."""
        ...

    def forget_grants(self, client_id: str | None = None) -> None:
        """Drops cached grants, so that the hooks are asked again."""

    def disconnect(self, client_id: str, reason: int) -> bool:
        """Ends a client's connection."""
        ...


class FileHooks:
    """Lets users in by a password file, and onto topics by an access control file, as Mosquitto does.

    Without a password file names are believed if ``anonymous``; without an access control file every topic is granted.
    ``reload`` reads both anew.

    Raises:
        AccessFileError: a file can't be used.
    """

    def __init__(self, *, password_file: Path | None, acl_file: Path | None, anonymous: bool) -> None:
        self._password_file = password_file
        self._acl_file = acl_file
        self._anonymous = anonymous
        self._check = PasswordCheck()
        self._broker: AskedBroker | None = None
        self._users: dict[str, str | None] = {}  # by client id, of connected clients and sessions
        self._passwords, self._acl = self._read()

    def _read(self) -> tuple[Passwords | None, Acl | None]:
        passwords = None if self._password_file is None else read_passwords(self._password_file)
        return passwords, None if self._acl_file is None else read_acl(self._acl_file)

    def attach(self, broker: AskedBroker) -> None:
        """Hands over the broker that asks."""
        self._broker = broker

    def close(self) -> None:
        """Ends the threads that check passwords."""
        self._check.close()

    # Reload

    def reload(self) -> int:
        """Reads both files anew; how many clients were disconnected, because their user or password is not the same.

        Raises:
            AccessFileError: a file can't be used; then nothing has changed.
        """
        self._passwords, self._acl = self._read()
        broker = self._broker
        if broker is None:
            return 0
        broker.forget_grants()
        ended = [client.client_id for client in broker.clients() if not self._is_still_known(client)]
        for client_id in ended:
            broker.disconnect(client_id, _NOT_AUTHORIZED)
        return len(ended)

    def _is_still_known(self, client: Client) -> bool:
        if self._passwords is None or _named(client.username) is None:
            return True
        return client.identity is not None and client.identity == self._passwords.proof(client.username)

    # What the broker asks

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Accepts a user with the right password, and who names none or can't prove it if ``anonymous``.

        Wrong users and wrong passwords read the same, and take the same time.
        """
        if request.auth_method is not None:  # for which there are no keys [MQTT-4.12.0-1]
            return Refuse(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, "no authentication method is offered")
        passwords, username = self._passwords, _named(request.username)
        if passwords is None or username is None:
            return Accept() if self._anonymous else Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "not authorized")
        try:
            is_right = await self._check.is_right(passwords, username, request.password or b"")
        except TooManyChecks:
            return Refuse(ConnAckReasonCode.SERVER_BUSY, "too many logins at a time")
        proof = passwords.proof(username)
        if not is_right or self._passwords is None or self._passwords.proof(username) != proof:
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "not authorized")
        return Accept(identity=proof)

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """Grants topics that the file lets the user write to."""
        acl = self._acl
        if acl is None or acl.allows(Access.WRITE, topic, username=_named(client.username), client_id=client.client_id):
            return PublishGrant(topic)
        return None

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """Grants every filter: rights are looked at message by message."""
        return True

    def may_receive(self, client_id: str, topic: str) -> bool:
        """Whether the file lets the client's user read a topic.

        The session of a client that hasn't come back since a start gets what it subscribed to; that is looked at again
        when the client is there.
        """
        acl = self._acl
        if acl is None or client_id not in self._users:
            return True
        return acl.allows(Access.READ, topic, username=self._users[client_id], client_id=client_id)

    def take(self, batch: Batch) -> None:
        """Acknowledges at once; not called, as no grant is durable."""
        batch.settle()

    def on_connected(self, client: Client) -> None:
        """Notes whose session it is; what was found out for another user is forgotten."""
        known = self._users
        username = _named(client.username)
        is_other = known.get(client.client_id) != username if client.client_id in known else bool(client.filters)
        known[client.client_id] = username
        broker = self._broker
        if broker is None:
            return
        if is_other:
            broker.forget_grants()
        if len(self._users) > 2 * len(broker.sessions) + _KEPT:
            self._users = {each: user for each, user in self._users.items() if each in broker.sessions}

    def on_disconnected(self, client: Client, reason: str) -> None:
        """Nothing to do."""

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Nothing to do."""
