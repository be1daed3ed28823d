"""``python -m terrazzo_broker``: the broker alone."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Coroutine, Sequence

from .broker import Broker
from .settings import BrokerSettings
from .standalone import OpenHooks

CLOSE_TIMEOUT_S = 5.0
UNLIMITED = 1 << 30  # alone it serves tests and benchmarks, which connect as fast as they can


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT; the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = BrokerSettings(max_keepalive_s=options.max_keepalive, connects_per_second=UNLIMITED)
        _run(serve(settings, host=options.host, port=options.port, anonymous=options.allow_anonymous))
    except (OSError, ValueError) as error:
        print(f"terrazzo_broker: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="terrazzo_broker", description="An MQTT 3.1.1 and 5.0 broker.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=1883, help="0 takes any free port")
    parser.add_argument("--allow-anonymous", action="store_true", help="without it everybody is refused")
    parser.add_argument("--max-keepalive", type=int, default=0, metavar="S", help="longest Keep Alive in seconds")
    parser.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))
    return parser


def _run(work: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


async def serve(settings: BrokerSettings, *, host: str, port: int, anonymous: bool) -> None:
    """Listens, says where on standard output, and ends in order on a signal."""
    broker = Broker(settings, OpenHooks(anonymous=anonymous))
    bound = await broker.listen_tcp(host, port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    gc.freeze()  # what exists by now stays: the collector needn't look at it again
    print(f"listening on {host}:{bound}", flush=True)
    await stop.wait()
    await broker.close(CLOSE_TIMEOUT_S)


if __name__ == "__main__":
    sys.exit(main())
