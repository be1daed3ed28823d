"""The row type of everything that clients can ask for, and the table of such rows.

Dispatch, validation, permission checks, the OpenAPI document and the documents are made from these rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import msgspec

from terrazzo.access.tokens import HeldToken
from terrazzo.api.kernel.envelope import ComponentReply, MessengerReply, Reply
from terrazzo.api.kernel.near_names import NearNames
from terrazzo.api.kernel.prefixes import configured_path
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.live.session import LiveSession
from terrazzo.ports.at_work import Work

_READS = "get_"  # what is called so reads, whoever may ask for it

_FREES = (
    "abort",
    "cancel",
    "clear",
    "clos",
    "delete",
    "disable",
    "discard",
    "end",
    "kick",
    "logo",
    "pause",
    "put_out",
    "recall",
    "remove",
    "stop",
    "unsub",
)
"""How names of actions begin, as far as tells them from others, that free what a company has or end what makes more."""

_FINDS = ("_item", "_list", "getItem", "getList")  # how names end by which one finds what to delete
_HISTORY = ("grid", "mosaic")  # of which nothing is deleted

Handler = Callable[[Services, Any, Any], Awaitable[Any]]
"""``handle_x(services, actor, request) -> result``. Without a permission the second argument is the ``Caller``."""


class Place(Protocol):
    """A connection's place among all, which it keeps once a good token has come on it."""

    reading: Work | None
    """What is done for the request that is under way alone and may end with the connection."""

    @property
    def company_id(self) -> int:
        """Whose token came on it last; 0: none yet."""

    def prove(self, company_id: int) -> None:
        """One has, of a user of this company."""


class CookieSession(msgspec.Struct):
    """A session that a browser keeps in a cookie which no script reads; see ``transports/console``."""

    given: str | None = None  # the token that the cookie gets; empty: the cookie ends; None: it stays as it is


class Caller(msgspec.Struct):
    """Whoever is at the other end of a connection, or of one HTTP request."""

    address: str
    token: str | None = None  # a connection keeps the last one that was sent to it
    live: LiveSession | None = None  # the subscriptions of a connection that stays
    held: HeldToken | None = None  # the token that was checked on a connection that stays
    slot: Place | None = None
    session: CookieSession | None = None  # whoever asks wants tokens in a cookie, instead of in answers
    traceparent: str = ""  # of the trace that one HTTP request belongs to
    position: str = ""  # that the answer has to have; looked at by a node that stands by


class Subscriber(msgspec.Struct, frozen=True):
    """An actor on a connection that stays."""

    actor: Actor
    live: LiveSession


def as_it_is(result: Any) -> Any:
    """The shape of results that a path answers as their handler returned them."""
    return result


def nothing(_result: Any) -> msgspec.UnsetType:
    """The shape of changes at component paths, whose answers carry only ``code``, ``msg`` and ``info``."""
    return msgspec.UNSET


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One thing that clients can ask for, at one place: an action of the gateway, or a method and path of HTTP.

    A path that does what an action does is the action's row with another place: see ``at``.
    """

    name: str  # the action; of a path the value of the label ``operation`` of its metrics
    summary: str  # for the documents; a sentence without its full stop
    request: type[msgspec.Struct]
    result: Any  # the type of what clients get, from which its schema comes; ``UnsetType``: no result
    permission: Role | None  # None: whoever asks, with or without a token
    handler: Handler
    aliases: tuple[str, ...] = ()  # other names of an action
    changes: bool = False  # something, though viewers may ask for it: what others wait for on their connection
    sends_commands: bool = False  # whose uids are in the envelope; the handler's result is ``Published``
    gives_token: bool = False  # the result has a field ``token``, which goes into a cookie for who wants that
    connection: bool = False  # over WebSocket and TCP only; the handler's second argument is a ``Subscriber``
    method: str = ""  # GET or POST; empty: an action of the gateway
    path: str = ""  # as documented: it begins with the default prefix of its component
    shape: Callable[[Any], Any] = as_it_is  # makes ``result`` of what the handler returned
    reply: Callable[[Callable[[Any], Any]], Reply] = ComponentReply  # the envelope of a path's answers
    takes_files: bool = False  # a form's files become the request's field ``attachments``
    media_types: tuple[str, ...] = ()  # of the file that a path answers in place of an envelope
    is_series: bool = False  # its records are flat and have a time: answered as Arrow, too
    instead: Mapping[str, Operation] = field(default_factory=dict)  # field that is given -> what is asked for then
    tries_first: bool = False  # it says itself when it begins to change something (``at_work.begin_change``)
    only_reads: bool = field(init=False)  # whoever may look may ask for it, beside other requests
    may_end: bool = field(init=False)  # at any moment, and nothing is the worse for it
    is_spared: bool = field(init=False)  # asked for by who has more memory than its share: it helps to have less

    def __post_init__(self) -> None:
        only_reads = self.permission is Role.VIEWER and not self.changes and not self.connection
        object.__setattr__(self, "only_reads", only_reads)
        object.__setattr__(self, "may_end", only_reads or self.name.startswith(_READS))
        object.__setattr__(self, "is_spared", _is_spared(self.name))

    def at(
        self, method: str, path: str, result: Any = None, shape: Callable[[Any], Any] = as_it_is, **more: Any
    ) -> Operation:
        """The same at a path.

        Args:
            result: the type that ``shape`` makes of what the handler returns; None: as it is.
            more: other fields of the row.
        """
        shown = self.result if result is None else result
        return replace(self, method=method, path=path, result=shown, shape=shape, **more)

    def address(self, prefixes: Mapping[str, str]) -> str:
        """The path below the configured prefix of its component."""
        return configured_path(self.path, prefixes)

    @property
    def has_result(self) -> bool:
        """Whether answers have a result; those of changes at component paths have none."""
        return self.result is not msgspec.UnsetType

    @property
    def is_messenger(self) -> bool:
        """Whether answers say what a provider said."""
        return self.reply is MessengerReply

    def choose(self, names: Collection[str]) -> Operation:
        """What a request with the fields ``names`` asks for."""
        return next((each for name, each in self.instead.items() if name in names), self)


class OperationTable:
    """Rows in the order of the documents: actions by name and alias, paths by method and path."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        """Raises ``ValueError`` where two rows stand at one place."""
        self._operations = tuple(operations)
        self._actions: dict[str, Operation] = {}
        self.find = self._actions.get
        """The action of a name or alias; None where there is none."""
        self._paths: set[tuple[str, str]] = set()
        for operation in self._operations:
            if operation.path:
                self._add_path(operation)
            else:
                self._add_action(operation)

    @cached_property
    def near_actions(self) -> NearNames:
        """Which action a mistyped name probably means."""
        return NearNames(self._actions)

    def _add_action(self, operation: Operation) -> None:
        for name in (operation.name, *operation.aliases):
            if name in self._actions:
                raise ValueError(f"two operations answer to {name}")
            self._actions[name] = operation

    def _add_path(self, operation: Operation) -> None:
        place = operation.method, operation.path
        if place in self._paths:
            raise ValueError(f"two operations answer to {' '.join(place)}")
        self._paths.add(place)

    def __getitem__(self, name: str) -> Operation:
        return self._actions[name]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)


def _is_spared(name: str) -> bool:
    word = name.rpartition("/")[2]
    return word.startswith(_FREES) or (word.endswith(_FINDS) and not any(each in word for each in _HISTORY))
