"""The registry in memory: terminals and objects, as the hot path looks them up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from terrazzo.domain.certificates.authorities import Authorities
from terrazzo.domain.claims.claim_key import ClaimKeys
from terrazzo.domain.payloads.form import PayloadForm
from terrazzo.domain.report_topic import uid_of
from terrazzo.domain.terminal import OutOfService, Terminal
from terrazzo.listeners import Listeners
from terrazzo.member_sets import MemberSets

_ID, _UID = attrgetter("id"), attrgetter("uid")


class Registry:
    """All terminals, and which of them share an object.

    All kinds of listeners are told after a change is in force. ``company_changes``: a company's id and whether it is
    open now. ``terminal_changes``: a terminal's record before and after, None where there was or is none.
    ``sharing_changes``: the uids of the terminals that an object gained, lost or kept when its ``terminal_list`` was
    changed. ``service_changes``: the uids of terminals that went out of service, or are back.
    """

    def __init__(self) -> None:
        self._terminals: dict[str, Terminal] = {}
        self._uids: dict[int, str] = {}
        self._terminals_of: dict[int, tuple[str, ...]] = {}  # object id -> its terminal_list
        self._objects_of = MemberSets()
        self._company_of: dict[int, int] = {}  # object id -> company id
        self._closed_companies: set[int] = set()
        self.claim_keys = ClaimKeys()
        self.out_of_service: dict[str, OutOfService] = {}  # by uid; who is in it is out of service now
        self.forms: dict[int, PayloadForm] = {}  # of configurations that have one
        self.authorities = Authorities()
        self.company_changes: Listeners[int, bool] = Listeners("companies")
        self.terminal_changes: Listeners[Terminal | None, Terminal | None] = Listeners("terminals")
        self.sharing_changes: Listeners[frozenset[str]] = Listeners("terminals of objects")
        self.service_changes: Listeners[Sequence[str]] = Listeners("terminals out of service")

    def terminal(self, uid: str) -> Terminal | None:
        """The terminal with this uid (its MQTT client id)."""
        return self._terminals.get(uid)

    def terminal_by_id(self, terminal_id: int) -> Terminal | None:
        """The terminal with this record id."""
        uid = self._uids.get(terminal_id)
        return None if uid is None else self._terminals.get(uid)

    def terminal_of_series(self, name: str) -> Terminal | None:
        """The terminal whose series bear this name; None for a former terminal's."""
        terminal = self._terminals.get(uid_of(name))
        return terminal if terminal is not None and terminal.series_name == name else None

    def series_name(self, uid: str) -> str:
        """The name of a terminal's series; the uid where it isn't known."""
        terminal = self._terminals.get(uid)
        return uid if terminal is None else terminal.series_name

    def terminals(self) -> Iterable[Terminal]:
        """All terminals, in no particular order."""
        return self._terminals.values()

    def load_terminals(self, terminals: Sequence[Terminal]) -> None:
        """Adds terminals that aren't known yet, before anybody listens: at a start."""
        self._terminals.update(zip(map(_UID, terminals), terminals, strict=True))
        self._uids.update(zip(map(_ID, terminals), map(_UID, terminals), strict=True))

    def load_objects(
        self, ids: Sequence[int], company_ids: Iterable[int], terminal_uids: Iterable[tuple[str, ...]]
    ) -> None:
        """Adds objects that aren't known yet, each with its company and its ordered ``terminal_list``: at a start."""
        self._company_of.update(zip(ids, company_ids, strict=True))
        self._terminals_of.update(zip(ids, terminal_uids, strict=True))
        for object_id in ids:
            self._objects_of.add_to_all(self._terminals_of[object_id], object_id)

    def put_terminal(self, terminal: Terminal) -> None:
        """Adds or replaces a terminal, by its uid; another record's with the same uid is gone before."""
        before = self._terminals.get(terminal.uid)
        if before is not None and before.id != terminal.id:
            self.drop_terminal(terminal.uid)
            before = None
        if before is not None:
            self._uids.pop(before.id, None)
        self._terminals[terminal.uid] = terminal
        self._uids[terminal.id] = terminal.uid
        self.terminal_changes.tell(before, terminal)

    def drop_terminal(self, uid: str) -> None:
        """Removes a terminal; unknown uids are ignored."""
        before = self._terminals.pop(uid, None)
        if before is not None:
            self._uids.pop(before.id, None)
            self.out_of_service.pop(uid, None)
            self.terminal_changes.tell(before, None)

    def set_out_of_service(self, changes: Mapping[str, OutOfService | None]) -> None:
        """Puts terminals (uids) out of service, or (None) back; those that are unknown are ignored."""
        known = [uid for uid in changes if uid in self._terminals]
        for uid in known:
            found = changes[uid]
            if found is None:
                self.out_of_service.pop(uid, None)
            else:
                self.out_of_service[uid] = found
        if known:
            self.service_changes.tell(known)

    def set_company(self, company_id: int, *, is_available: bool) -> None:
        """Opens or closes a company. The records of its terminals follow by ``put_terminal``."""
        if is_available == self.is_company_available(company_id):
            return
        if is_available:
            self._closed_companies.discard(company_id)
        else:
            self._closed_companies.add(company_id)
        self.company_changes.tell(company_id, is_available)

    def is_company_available(self, company_id: int) -> bool:
        """Whether a company is open; one that isn't known is."""
        return company_id not in self._closed_companies

    def put_object(self, object_id: int, terminal_uids: Iterable[str], *, company_id: int = 0) -> None:
        """Sets the ordered ``terminal_list`` of an object, and the company that owns it."""
        before = self._forget_object(object_id)
        uids = tuple(terminal_uids)
        self._company_of[object_id] = company_id
        self._terminals_of[object_id] = uids
        self._objects_of.add_to_all(uids, object_id)
        if before != uids:
            self._tell_sharing(frozenset((*before, *uids)))

    def drop_object(self, object_id: int) -> None:
        """Removes an object; unknown ids are ignored."""
        self._tell_sharing(frozenset(self._forget_object(object_id)))

    def object_terminals(self, object_id: int) -> tuple[str, ...]:
        """The terminals of an object in order, empty for an unknown one."""
        return self._terminals_of.get(object_id, ())

    def object_ids(self) -> Iterable[int]:
        """The ids of all objects, in no particular order."""
        return self._company_of.keys()

    def object_company(self, object_id: int) -> int | None:
        """The id of the company that owns an object, None for an unknown one."""
        return self._company_of.get(object_id)

    def terminal_objects(self, uid: str) -> frozenset[int]:
        """The ids of the objects that list a terminal."""
        return frozenset(self._objects_of.of(uid))

    def share_object(self, uid: str, other: str) -> bool:
        """Whether an object lists both terminals (a terminal with ``is_route`` may then publish for the other one)."""
        return not set(self._objects_of.of(uid)).isdisjoint(self._objects_of.of(other))

    def _forget_object(self, object_id: int) -> tuple[str, ...]:
        uids = self._terminals_of.pop(object_id, ())
        self._company_of.pop(object_id, None)
        for uid in uids:
            self._objects_of.discard(uid, object_id)
        return uids

    def _tell_sharing(self, uids: frozenset[str]) -> None:
        if uids:
            self.sharing_changes.tell(uids)
