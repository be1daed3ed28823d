"""What a SCRAM server works out, by scramp.

Loaded by the first terminal that logs in so, in a thread: with scramp come all structures of ASN.1, 2 MB and 40 ms.
"""

from __future__ import annotations

import msgspec
from scramp import ScramException, ScramMechanism
from scramp.core import ScramServer
from scramp.utils import saslprep

Keys = tuple[bytes, bytes, bytes, int]


class NotScram(ValueError):
    """A message that isn't what SCRAM has there, or proves nothing."""


class Begun(msgspec.Struct, frozen=True):
    """A server that has had client-first: who that names, and what is answered."""

    server: ScramServer
    username: str
    server_first: str

    def finish(self, client_final: str) -> str:
        """server-final.

        Raises:
            NotScram: the proof is wrong.
        """
        try:
            self.server.set_client_final(client_final)
        except ScramException as error:
            raise NotScram from error
        return str(self.server.get_server_final())


def begin(method: str, client_first: str, keys: Keys, *, nonce: str) -> Begun:
    """A server with these keys that has had client-first; its answer is the same each time.

    Raises:
        NotScram: that is none.
    """
    names: list[str] = []

    def keys_of(username: str) -> Keys:
        names.append(username)
        return keys

    try:
        server = ScramMechanism(method).make_server(keys_of, s_nonce=nonce)
        server.set_client_first(client_first)
        return Begun(server, names[-1], server.get_server_first())
    except ScramException as error:
        raise NotScram from error


def derive(method: str, pin: str, salt: bytes, iterations: int) -> Keys | None:
    """The salted keys of a pin; None of one that SASLprep forbids."""
    try:
        keys: Keys = ScramMechanism(method).make_auth_info(pin, iterations, salt)
    except ScramException:
        return None
    return keys


def is_prepared(username: str, name: str) -> bool:
    """Whether a user name is ``name`` as SASLprep writes it."""
    try:
        return bool(username == saslprep(name))
    except ScramException:
        return False
