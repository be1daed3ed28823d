"""Opens listeners as configured, the broker's among them, with errors that name the configuration key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from terrazzo.config.sections import ConfigError, MqttSection
from terrazzo.runtime.port_in_use import explain_bind
from terrazzo_broker.broker import Broker
from terrazzo_broker.listeners.certificates import CertificateError, TlsFiles


async def listen_mqtt(broker: Broker, section: MqttSection) -> tuple[int, list[str]]:
    """Opens the broker's listeners; returns the plain one's port (0: it is off) and the addresses of all that are on,
    the plain one's first.

    Raises:
        ConfigError: an address is taken, or a TLS file can't be used.
    """
    host = section.host
    files = TlsFiles(cert=section.tls_cert, key=section.tls_key, client_ca=section.tls_client_ca or None)
    port, addresses = 0, []
    if section.port is not None:
        port = await bound("mqtt.port", broker.listen_tcp, host, section.port)
        addresses.append(f"mqtt://{host}:{port}")
    if section.tls_port is not None:

        async def listen_tls(host: str, port: int) -> int:
            return await broker.listen_tls(host, port, cert=files.cert, key=files.key, client_ca=files.client_ca)

        addresses.append(f"mqtts://{host}:{await bound('mqtt.tls_port', listen_tls, host, section.tls_port)}")
    if section.websocket_port is not None:
        websocket = await bound("mqtt.websocket_port", broker.listen_websocket, host, section.websocket_port)
        addresses.append(f"ws://{host}:{websocket}/mqtt")
    if section.websocket_tls_port is not None:
        listen = partial(broker.listen_websocket, tls=files)
        secure = await bound("mqtt.websocket_tls_port", listen, host, section.websocket_tls_port)
        addresses.append(f"wss://{host}:{secure}/mqtt")
    return port, addresses


async def bound(key: str, listen: Callable[[str, int], Awaitable[int]], host: str, port: int) -> int:
    """Calls ``listen``; returns the port bound.

    Raises:
        ConfigError: it can't listen there; names ``key`` and what to do, or the key of the TLS file.
    """
    try:
        return await listen(host, port)
    except CertificateError as error:
        raise ConfigError(f"mqtt.{error}") from None
    except OSError as error:
        raise ConfigError(f"{key}: {explain_bind(key, host, port, error)}") from None
