"""``ReadsWork``: keeps the APIs of a node that stands by up, and has a plain page answer while they are not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from terrazzo.config.sections import ConfigError
from terrazzo.database.migration import DatabaseUnusable
from terrazzo.errors import Unavailable
from terrazzo.ports.store import StoreUnavailable
from terrazzo.runtime.replica.replica import Replica
from terrazzo.runtime.standby_page import StandbyPage
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_AGAIN_S = 2.0
_EXPECTED = (DatabaseUnusable, Unavailable, StoreUnavailable, ConfigError, OSError)


class ReadsWork:
    """Opens a replica, and another one when it fails: that never ends the node, which may have to lead.

    Attributes:
        page: of the HTTP port while no replica has it.

    Args:
        new_replica, new_page: make one more.
    """

    def __init__(self, new_replica: Callable[[], Replica], new_page: Callable[[], StandbyPage]) -> None:
        self.page: StandbyPage | None = None
        self._new_replica = new_replica
        self._new_page = new_page
        self._failure_log = SparseLog(_log)

    async def start(self) -> None:
        """Has the page answer; raises as it does."""
        self.page = self._new_page()
        await self.page.start()

    async def stop(self) -> None:
        """Lets go of the page's port."""
        page, self.page = self.page, None
        if page is not None:
            await page.stop()

    async def work(self) -> None:
        """Works until it is cancelled, after which nothing of it listens but the page, if no replica did."""
        while True:
            replica = self._new_replica()
            try:
                await self._serve(replica)
            except _EXPECTED as error:
                self._failure_log.warning("this node answers no reads: %s", error)
            finally:
                await replica.close()
            if self.page is None:
                await self.start()
            await asyncio.sleep(_AGAIN_S)

    async def _serve(self, replica: Replica) -> None:
        await replica.open()
        await self.stop()
        await replica.listen()
        _log.warning("this node answers reads")
        await replica.failed.wait()
        raise Unavailable("a task has failed that reads need")
