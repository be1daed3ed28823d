"""Callbacks that are told when something happens; one that raises doesn't keep the others from being told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

from terrazzo.sparse_log import SparseLog

P = ParamSpec("P")

_log = logging.getLogger(__name__)


class Listeners(Generic[P]):
    """The callbacks for one kind of event, called in the order in which they were added; ``P``: their parameters.

    ``name`` is what they listen to, in the log and as the label of ``terrazzo_listener_failures_total``.
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
        """Whether any listener wants to be told now; if none does, what is expensive to work out can be left out."""
        return any(is_wanted() for is_wanted in self._wanted)

    def listen(self, callback: Callable[P, object], *, wanted: Callable[[], bool] = lambda: True) -> None:
        """Adds a callback; it is called synchronously by each later ``tell``, after those added before.

        ``wanted`` says whether it wants to be told at the moment; it counts only where ``are_wanted`` is asked first,
        and the callback is also told of what others want.
        """
        self._callbacks = (*self._callbacks, callback)
        self._wanted = (*self._wanted, wanted)

    def set_listening(self, callback: Callable[P, object], *, is_on: bool) -> None:
        """Has a callback told from now on, or no longer; what is as it should be stays so.

        For what few want and is told often: a callback that has nothing to do costs more than none.
        """
        if is_on and callback not in self._callbacks:
            self.listen(callback)
        elif not is_on and callback in self._callbacks:
            at = self._callbacks.index(callback)
            self._callbacks = (*self._callbacks[:at], *self._callbacks[at + 1 :])
            self._wanted = (*self._wanted[:at], *self._wanted[at + 1 :])

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls all callbacks; what one raises is counted, and logged at most every ten seconds."""
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
