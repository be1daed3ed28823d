"""A WebSocket as the transport of a ``Connection``: binary frames, in which packets may start and end anywhere."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web
from mqtt5 import DisconnectReasonCode

from ..connection import Connection
from ..refusals import Cause

FRAME_BYTES = 64 << 10  # no frame that we send is larger
HIGH_WATER_BYTES = 64 << 10  # more than this waiting pauses the connection's writing
LOW_WATER_BYTES = 16 << 10
GOODBYE_TIMEOUT_S = 6.0  # a little more than aiohttp waits for the answer to a close frame


class WebSocketTransport(asyncio.Transport):
    """Reads and writes the frames of one WebSocket for one connection.

    What waits to be sent is bounded by the connection, which stops writing when it is told; what has arrived and may
    not be delivered stays in aiohttp's queue, which stops reading from the socket.
    """

    def __init__(self, websocket: web.WebSocketResponse, below: asyncio.Transport) -> None:
        super().__init__()
        self._websocket = websocket
        self._below = below
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()  # something to send, or the end
        self._readable = asyncio.Event()
        self._readable.set()
        self._is_write_paused = False
        self._is_closing = False
        self._close_code = WSCloseCode.OK
        self._connection: Connection | None = None

    async def serve(self, connection: Connection) -> None:
        """Reads and writes for the connection until either side ends it."""
        self._connection = connection
        connection.connection_made(self)
        writing = connection.core.peer_tasks.start(f"write to WebSocket {connection}", self._write_all, self.abort)
        error: Exception | None = None
        try:
            error = await self._read_all(connection)
        finally:
            self._waiting.clear()
            self._stop()
            try:
                await self._end(writing)
            finally:
                self._connection = None
                connection.connection_lost(error)

    async def _end(self, writing: asyncio.Task[None]) -> None:
        """Waits for the last frames to be sent, at most ``GOODBYE_TIMEOUT_S``, then aborts."""
        await asyncio.wait([writing], timeout=GOODBYE_TIMEOUT_S)
        if not writing.done():
            self.abort()
            await writing

    # Reading

    async def _read_all(self, connection: Connection) -> Exception | None:
        while True:
            message = await self._websocket.receive()
            await self._readable.wait()
            if message.type is WSMsgType.BINARY:
                if message.data and not self._is_closing:
                    connection.data_received(message.data)  # any part of packets [MQTT-6.0.0-2] of both
            elif message.type is WSMsgType.TEXT:
                self._refuse_text(connection)
            elif message.type is WSMsgType.ERROR:
                connection.core.stats.protocol_errors += 1  # aiohttp has told the peer
                connection.tell_refused(Cause.PROTOCOL_ERROR, detail=f"WebSocket: {message.data}")
                return _as_error(message.data)
            else:
                return None

    def _refuse_text(self, connection: Connection) -> None:
        """Ends a connection that sent a text frame. [MQTT-6.0.0-1] of both"""
        if not self._is_closing:
            connection.core.stats.protocol_errors += 1
            self._close_code = WSCloseCode.UNSUPPORTED_DATA
            text = "a WebSocket frame that is not binary"
            connection.tell_refused(Cause.PROTOCOL_ERROR, DisconnectReasonCode.PROTOCOL_ERROR, text)
            connection.fail(DisconnectReasonCode.PROTOCOL_ERROR, text)

    def pause_reading(self) -> None:
        """Delivers no received bytes until ``resume_reading``."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """Delivers received bytes again."""
        self._readable.set()

    def is_reading(self) -> bool:
        """Whether received bytes are delivered."""
        return self._readable.is_set() and not self._is_closing

    # Writing

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Sends bytes as soon as the peer takes them, in frames of at most ``FRAME_BYTES``."""
        if self._is_closing or not data:
            return
        self._waiting.extend(bytes(data[at : at + FRAME_BYTES]) for at in range(0, len(data), FRAME_BYTES))
        self._waiting_bytes += len(data)
        self._wake.set()
        if self._waiting_bytes > HIGH_WATER_BYTES and not self._is_write_paused and self._connection is not None:
            self._is_write_paused = True
            self._connection.pause_writing()

    async def _write_all(self) -> None:
        """Sends the waiting frames, and in the end the close frame; returns early where the peer is gone."""
        try:
            while await self._has_frame():
                frame = self._waiting.popleft()
                await self._websocket.send_bytes(frame)
                self._waiting_bytes -= len(frame)
                self._resume_writing()
            await self._websocket.close(code=self._close_code)
        except ConnectionError:
            self.abort()

    async def _has_frame(self) -> bool:
        while not self._waiting and not self._is_closing:
            self._wake.clear()
            await self._wake.wait()
        return bool(self._waiting)

    def _resume_writing(self) -> None:
        if self._is_write_paused and self._waiting_bytes <= LOW_WATER_BYTES:
            self._is_write_paused = False
            if self._connection is not None and not self._is_closing:
                self._connection.resume_writing()

    def get_write_buffer_size(self) -> int:
        """Bytes that wait to be sent."""
        return self._waiting_bytes

    def can_write_eof(self) -> bool:
        """False: the close frame of WebSocket ends both directions."""
        return False

    # The end

    def _stop(self) -> None:
        self._is_closing = True
        self._readable.set()
        self._wake.set()

    def is_closing(self) -> bool:
        """Whether it takes no more bytes."""
        return self._is_closing

    def close(self) -> None:
        """Sends what waits, then a close frame."""
        self._stop()

    def abort(self) -> None:
        """Closes the socket at once; waiting bytes are dropped."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self._stop()
        self._below.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The extra information of the socket's transport."""
        return self._below.get_extra_info(name, default)


def _as_error(data: object) -> Exception:
    return data if isinstance(data, Exception) else ConnectionError(str(data))
