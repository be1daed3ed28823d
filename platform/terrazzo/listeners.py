"""Who is to be told when something happens. One that raises doesn't keep it from the others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

from terrazzo.sparse_log import SparseLog

P = ParamSpec("P")

_log = logging.getLogger(__name__)


class Listeners(Generic[P]):
    """Callbacks for one kind of news, called in the order in which they came.

    ``name`` says what they hear of, in the log and as the label of ``terrazzo_listener_failures_total``.
    """

    __slots__ = ("_callbacks", "_log", "_wanted", "failures", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self._callbacks: tuple[Callable[P, object], ...] = ()
        self._wanted: tuple[Callable[[], bool], ...] = ()
        self._log = SparseLog(_log)

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    @property
    def are_wanted(self) -> bool:
        """Whether anybody cares at the moment: news that cost something to work out need not be, otherwise."""
        return any(is_wanted() for is_wanted in self._wanted)

    def listen(self, callback: Callable[P, object], *, wanted: Callable[[], bool] = lambda: True) -> None:
        """Has ``callback`` called with all later news, synchronously and after those that listen already.

        ``wanted`` says whether it cares at the moment, where whoever tells asks ``are_wanted`` first. It is told of
        what others want, too.
        """
        self._callbacks = (*self._callbacks, callback)
        self._wanted = (*self._wanted, wanted)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls all of them; whatever one raises is counted, and logged at most every ten seconds."""
        for callback in self._callbacks:
            try:
                callback(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - a listener's fault is its own: the next ones are told too
                self.failures += 1
                self._log.warning(
                    "%s: %s failed: %s: %s", self.name, _name_of(callback), type(error).__name__, error, exc_info=True
                )


def _name_of(callback: Callable[..., object]) -> str:
    return getattr(callback, "__qualname__", None) or type(callback).__name__
