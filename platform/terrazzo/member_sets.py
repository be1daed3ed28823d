"""``MemberSets``: small sets of numbers, of which there may be a hundred thousand."""

from __future__ import annotations

from collections.abc import Collection, Iterable

_FEW = 8  # as a tuple they take a fifth of a set's memory, and are found as fast


class MemberSets:
    """A set of numbers for each key, empty unless something was added: a tuple while it has few, a set beyond."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, ...] | set[int]] = {}

    def of(self, key: str) -> Collection[int]:
        """The members, in no particular order; not to be changed."""
        return self._of.get(key, ())

    def add(self, key: str, member: int) -> None:
        """Adds a member; one that is there already is not added again."""
        known = self._of.get(key, ())
        if isinstance(known, set):
            known.add(member)
        elif member not in known:
            self._of[key] = (*known, member) if len(known) < _FEW else {*known, member}

    def add_to_all(self, keys: Iterable[str], member: int) -> None:
        """Adds a member to the set of each of these keys."""
        of, alone = self._of, (member,)
        for key in keys:
            if of.setdefault(key, alone) is not alone:
                self.add(key, member)

    def discard(self, key: str, member: int) -> None:
        """Removes a member if it is there."""
        known = self._of.get(key, ())
        if isinstance(known, set):
            known.discard(member)
        else:
            known = tuple(each for each in known if each != member)
            self._of[key] = known
        if not known:
            self._of.pop(key, None)
