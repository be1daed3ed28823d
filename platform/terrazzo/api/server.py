"""The listener of a port of HTTP."""

from __future__ import annotations

from aiohttp import web

_DRAIN_S = 3.0  # for requests under way when the server stops


class HttpServer:
    """Serves one application on one address."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_DRAIN_S)

    @property
    def is_listening(self) -> bool:
        """Whether it accepts connections."""
        return bool(self._runner.addresses)

    async def start(self, host: str, port: int) -> int:
        """Listens; port 0 takes a free one. Returns the port.

        Raises:
            OSError: the address is taken or not ours.
        """
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, backlog=1024).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stops accepting, lets requests under way finish, closes."""
        await self._runner.cleanup()
