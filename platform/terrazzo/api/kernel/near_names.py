"""``NearNames``: the known name that a mistyped one probably means, for next to nothing, as anybody may ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_LONGEST = 64


class NearNames:
    """Finds a name that one letter more, less or other makes of what is known, or two neighbours swapped.

    Each known name is kept under all texts that it is with a letter less; a name is looked for as it is and with a
    letter less: some sixty looks into a dictionary, whatever is asked.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._of: dict[str, str] = {}
        for name in names:
            for shorter in (name.lower(), *_with_one_less(name.lower())):
                self._of.setdefault(shorter, name)

    def nearest(self, name: str) -> str:
        """The known name, empty where there is none so near."""
        if len(name) > _LONGEST:
            return ""
        lower = name.lower()
        return next((self._of[each] for each in (lower, *_with_one_less(lower)) if each in self._of), "")


def _with_one_less(name: str) -> Iterator[str]:
    return (name[:at] + name[at + 1 :] for at in range(len(name)))
