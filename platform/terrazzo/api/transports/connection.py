"""A connection of a port of HTTP: admission, clocks, and the requests whose head is known; aiohttp reads all others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from aiohttp import WSCloseCode, web

from terrazzo.api.kernel.envelope import FAILURE, UNREAD, Answer, Failure
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.transports.bodies.frame_lengths import FrameLengths
from terrazzo.api.transports.bodies.reader import UNPROVEN_BYTES
from terrazzo.api.transports.connection_limiter import Cut
from terrazzo.api.transports.idle_clock import IdleClock
from terrazzo.api.transports.json_response import write_answer
from terrazzo.api.transports.known_heads import KnownHead, KnownHeads
from terrazzo.api.transports.peers.shares import ConnectionSlot, Full
from terrazzo.api.transports.peers.unread_clock import UnreadClock
from terrazzo.api.transports.port import Port
from terrazzo.api.transports.refusals import GOODBYE_S, hang_up, refused_with
from terrazzo.api.transports.request_bounds import RequestBounds
from terrazzo.ports import at_work
from terrazzo.reasons import reason_of, say

HEAD_BYTES = 64 * 1024  # all of a head
_PROOF_S = 0.05  # between looks whether a token has come that was sent before a long message
_PROOF_TRIES = 20


class HttpConnection(asyncio.Protocol):
    """Stands before aiohttp's protocol and hands it what it receives, but for requests whose head is known.

    That protocol is made for the first bytes that need it: who connects and says nothing costs little, and leaves
    nothing for the garbage collector, as nothing here refers to itself when the connection is lost.

    One too many is refused, and a head that takes too long or is too long ends the connection, as does idleness after
    ``limits.idle_timeout_s``. Bodies are timed by whoever reads them.

    Args:
        make_reader: makes aiohttp's protocol for this connection, which is given the transport itself.
        connections: of the port; this one is among them while it is open.
    """

    __slots__ = (
        "_address",
        "_answering",
        "_asked",
        "_bounds",
        "_connections",
        "_frames",
        "_give_up_handshake",
        "_head_timer",
        "_heads",
        "_held",
        "_idle",
        "_is_closing",
        "_is_refused",
        "_is_saying_goodbye",
        "_make_reader",
        "_own_slot",
        "_port",
        "_reader",
        "_request_slot",
        "_transport",
        "_unread",
        "_waiting",
        "_writable",
        "is_in_reserve",
        "is_proxied",
        "is_upgraded",
    )

    def __init__(
        self, port: Port, make_reader: Callable[[], asyncio.Protocol], connections: set[HttpConnection]
    ) -> None:
        self._port = port
        self._make_reader = make_reader
        self._reader: asyncio.Protocol | None = None
        self._connections = connections
        self._transport: asyncio.Transport | None = None  # where it was admitted and is open
        self._address = ""
        self._idle: IdleClock | None = None
        self._heads: KnownHeads | None = None  # while requests may go past aiohttp
        self._is_closing = False
        self._is_refused = False
        self._is_saying_goodbye = False
        self._own_slot: ConnectionSlot | None = None
        self._request_slot: ConnectionSlot | Full | None = None  # of the client for whom a proxy asks
        self.is_in_reserve = self.is_upgraded = False  # nothing but health is answered; it is a WebSocket
        self.is_proxied = False  # the peer is a trusted proxy
        self._frames: FrameLengths | None = None  # of an upgraded connection, until a good token comes
        self._unread: UnreadClock | None = None  # while the peer doesn't take what it is sent
        self._writable: asyncio.Event | None = None  # set: the peer takes what it is sent
        self._bounds = RequestBounds()
        self._head_timer: asyncio.TimerHandle | None = None
        self._give_up_handshake: Callable[[], object] | None = None
        # A request that aiohttp doesn't see, the task that answers these, one after the other, what that waits for
        # between two of them, and what came after it:
        self._asked: tuple[KnownHead, bytes] | None = None
        self._answering: asyncio.Task[None] | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._held = b""

    def begin_handshake(self, address: str, give_up: Callable[[], object]) -> bool:
        """TLS comes before HTTP: takes a place for the time of the handshake, and after; whether there is one.

        ``give_up`` ends the handshake, when another address needs the place.
        """
        self._address, self._give_up_handshake = address, give_up
        return self._enter() is None

    def end_handshake(self) -> None:
        """Gives the place back of a handshake that led nowhere."""
        self._give_up_handshake = None
        if self._transport is None:
            self._leave()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admits the peer, or tells it that there are too many."""
        opened = cast(asyncio.Transport, transport)
        peer = opened.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self.is_proxied = self._address in self._port.proxies
        full = self._enter() if self._own_slot is None else None
        if full is not None:
            self._refuse(opened, self._port.connection_limiter.why(full))
            return
        self._transport = opened
        self._connections.add(self)
        self._idle = IdleClock(self._port.limits.idle_timeout_s, opened.close)
        if not (self.is_in_reserve or self._is_closing):
            self._heads = self._port.heads

    def _enter(self) -> Full | None:
        limiter, port = self._port.connection_limiter, self._port.name
        place = limiter.enter(port, self._address, give_way=self._give_way, is_idle=self._is_idle)
        if isinstance(place, ConnectionSlot):
            self._own_slot = place
            return None
        if place is Full.ALL and self._port.has_health:
            self._own_slot = limiter.enter_reserve(port, self._address, give_way=self._give_way)
            self.is_in_reserve = self._own_slot is not None
        return None if self.is_in_reserve else place

    def _refuse(self, transport: asyncio.Transport, info: str) -> None:
        self._is_refused = True
        self._is_saying_goodbye = self._port.connection_limiter.begin_goodbye()
        if self._is_saying_goodbye:
            hang_up(transport, 503, info)
        else:
            transport.abort()

    def _is_idle(self) -> bool:
        return self.is_upgraded or self._idle is None or not self._idle.is_held

    def _give_way(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        elif self._give_up_handshake is not None:
            self._give_up_handshake()

    @property
    def is_connected(self) -> bool:
        """Whether it has its transport, after the handshake where there is one."""
        return self._transport is not None

    @property
    def slot(self) -> ConnectionSlot | None:
        """The place of whoever asks, to be kept when they show a good token."""
        return self._request_slot if isinstance(self._request_slot, ConnectionSlot) else self._own_slot

    @property
    def unsent_transport(self) -> asyncio.Transport | None:
        """Where bytes wait for the peer; None when it is gone."""
        return self._transport

    def enter_request(self, address: str) -> None:
        """A request of the client at ``address`` begins, which the peer, a trusted proxy, hands on."""
        limiter = self._port.connection_limiter
        self._request_slot = limiter.enter_behind_proxy(address, give_way=self._give_way, is_idle=self._is_idle)

    @property
    def refusal(self) -> str:
        """Why the request that has come is not answered; empty where it is."""
        if isinstance(self._request_slot, Full):
            return self._port.connection_limiter.why(self._request_slot)
        return self._port.connection_limiter.why(Full.ALL) if self.is_in_reserve else ""

    def _leave_request(self) -> None:
        if isinstance(self._request_slot, ConnectionSlot):
            self._request_slot.leave()
        self._request_slot = None

    def data_received(self, data: bytes) -> None:
        """Answers a request whose head is known; hands all others to aiohttp."""
        heads, idle = self._heads, self._idle
        if heads is None or idle is None or self._asked is not None or not self._bounds.is_at_rest:
            self._pass_on(data)
        elif (found := heads.find(data)) is None:
            self._hand_on(data)
        else:
            self._asked = found
            if (waiting := self._waiting) is not None:
                self._waiting = None
                waiting.set_result(None)
            elif self._answering is None:
                self._answering = idle.loop.create_task(self._answer(heads, idle), name="requests with a known head")

    def _pass_on(self, data: bytes) -> None:
        if self._transport is None or self._is_refused:
            return None
        if self._asked is not None:
            return self._hold(data)
        return self._hand_on(data) if self._frames is None else self._watch_frames(self._frames, data)

    def _hold(self, data: bytes) -> None:
        assert self._transport is not None
        self._held += data
        self._transport.pause_reading()  # the rest waits in the socket

    def upgrade(self) -> None:
        """What comes from now on are frames of a WebSocket; until a good token comes, of short messages.

        Raises:
            HTTPBadRequest: some have come already, before the upgrade was answered.
        """
        if self._bounds.after_head:
            raise refused_with(web.HTTPBadRequest(), say("upgrade_too_early"))
        self.is_upgraded, self._frames, self._heads = True, FrameLengths(UNPROVEN_BYTES), None
        self._stop_waiting()

    def _watch_frames(self, frames: FrameLengths, data: bytes) -> None:
        if self._held:  # aiohttp reads on by itself
            self._hold(data)
        elif self._is_proven:
            self._frames = None
            self._read(data)
        else:
            passed = frames.feed(data)
            self._read(data[:passed])
            if passed < len(data):
                self._hold(data[passed:])
                self._judge_long_message(_PROOF_TRIES)

    @property
    def _is_proven(self) -> bool:
        return self.slot is not None and self.slot.is_proven

    def _judge_long_message(self, tries: int) -> None:
        """Waits for the token of a message before it, if there was one."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._is_proven:
            self._frames, data, self._held = None, self._held, b""
            transport.resume_reading()
            self._read(data)
        elif tries:
            asyncio.get_running_loop().call_later(_PROOF_S, self._judge_long_message, tries - 1)
        else:
            info = f"message over {UNPROVEN_BYTES} bytes, which needs a good token"
            self._port.connection_limiter.cut(Cut.TOO_LONG, self._address, info)
            reason = WSCloseCode.MESSAGE_TOO_BIG.to_bytes(2, "big") + info.encode()
            transport.write(b"\x88" + bytes([len(reason)]) + reason)
            transport.close()
            asyncio.get_running_loop().call_later(GOODBYE_S, transport.abort)

    def _hand_on(self, data: bytes) -> None:
        bounds = self._bounds
        bounds.receive(data)
        if bounds.head_bytes > HEAD_BYTES:
            self._refuse_head(Cut.HEAD_TOO_LONG, 431, say("headers_too_long", most=HEAD_BYTES))
            return
        if not bounds.is_head_complete and self._head_timer is None:
            timeout_s = self._port.limits.request_timeout_s
            info = say("headers_late", seconds=timeout_s)
            loop = asyncio.get_running_loop()
            self._head_timer = loop.call_later(timeout_s, self._refuse_head, Cut.HEAD_TIMEOUT, 408, info)
        self._read(data)

    def _read(self, data: bytes) -> None:
        if self._reader is None and self._transport is not None:
            self._reader = self._make_reader()
            self._reader.connection_made(self._transport)
        if self._reader is not None:
            self._reader.data_received(data)

    async def _answer(self, heads: KnownHeads, idle: IdleClock) -> None:
        """Answers requests that aiohttp doesn't see, for as long as the connection has more of them: a task for each
        would be a twelfth of what a short one costs.
        """
        address, is_proxied, answer = self._address, self.is_proxied, heads.answer
        try:
            while (asked := self._asked) is not None:
                idle.is_held = True
                known, body = asked
                try:
                    if is_proxied or known.forwarded_for:
                        await self._answer_client(heads, known, body)
                    else:
                        caller = Caller(address, known.token, slot=self._own_slot)
                        writable = self._write(await answer(body, caller, known.action))
                        if writable is not None:
                            await writable.wait()
                finally:
                    self._asked = None
                    if self._request_slot is not None:
                        self._leave_request()
                    idle.restart()
                    if self._held or self._is_closing:
                        self._go_on()  # what came early is next
                if self._asked is None and self._heads is not None:
                    self._waiting = idle.loop.create_future()
                    await self._waiting
        except ConnectionError:
            pass  # the peer is gone, and with it whoever would want to know
        finally:
            self._answering = self._waiting = None

    def _stop_waiting(self) -> None:
        """No further request comes to the task that answers them."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    async def _answer_client(self, heads: KnownHeads, known: KnownHead, body: bytes) -> None:
        """Answers a request that may be that of a client behind the peer, or more than is let in."""
        hops = known.forwarded_for
        address = self._port.proxies.client_of(self._address, hops) if hops else self._address
        if self.is_proxied:
            self.enter_request(address)
        if refusal := self.refusal:
            await self.send(UNREAD.failure(Failure(FAILURE, refusal, 503, reason=reason_of(refusal))))
        else:
            await self.send(await heads.answer(body, Caller(address, known.token, slot=self.slot), known.action))

    async def send(self, answer: Answer) -> None:
        """Writes a whole response, and waits for a peer that is slow to read.

        Raises:
            ConnectionResetError: the peer is gone.
        """
        writable = self._write(answer)
        if writable is not None:
            await writable.wait()

    def _write(self, answer: Answer) -> asyncio.Event | None:
        """Writes a whole response; for a peer that is slow to read what is to be waited for."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the peer is gone")
        write_answer(transport, answer)
        return self._writable

    def _go_on(self) -> None:
        """What came early is next."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._is_closing:
            transport.close()
        elif self._held:
            data, self._held = self._held, b""
            transport.resume_reading()
            self.data_received(data)

    # What happens to a request that aiohttp has read:

    def on_request(self) -> None:
        """The head is complete, and a handler has the request."""
        self._bounds.end_head()
        self._stop_head_timer()
        if self._idle is not None:
            self._idle.is_held = True

    def on_answered(self, request: web.BaseRequest, *, stays: bool) -> None:
        """The answer has been written, after which the connection stays or not."""
        self._leave_request()
        if self._idle is not None:
            self._idle.restart()
        if stays:
            self._bounds.end_request(request.content_length or 0)

    def learn_head(self, request: web.BaseRequest, token: str | None, action: str) -> None:
        """The gateway has answered this request: with the same head it need not be read again."""
        if self._port.heads is not None and self._bounds.first_read:
            self._port.heads.learn(self._bounds.first_read, request, token, action)

    def count_late_body(self) -> None:
        """The application waited for the rest of a body in vain."""
        timeout_s = self._port.limits.request_timeout_s
        self._port.connection_limiter.cut(Cut.BODY_TIMEOUT, self._address, f"body: not complete within {timeout_s} s")

    # The connection's end:

    def close(self) -> asyncio.Task[None] | None:
        """No further request goes past aiohttp, and who has asked nothing of it is gone.

        Returns the request that is being answered, after which it closes.
        """
        self._is_closing, self._heads = True, None
        self._stop_waiting()
        if self._asked is None and self._reader is None and self._transport is not None:
            self._transport.close()
        return self._answering if self._asked is not None else None

    def _refuse_head(self, why: Cut, status: int, info: str) -> None:
        """What else comes is not read, nor does aiohttp answer anything after these last words."""
        self._is_refused, self._heads = True, None
        self._stop_waiting()
        self._stop_head_timer()
        if self._reader is not None:
            cast(Any, self._reader).transport = None  # which it would close
            self._reader.connection_lost(None)
            self._reader = None
        self._port.connection_limiter.cut(why, self._address, info)
        if self._transport is not None:
            hang_up(self._transport, status, info)

    def connection_lost(self, exc: Exception | None) -> None:
        """Counts it out, and ends what reads for whoever has gone; what changes something goes on."""
        self._stop_head_timer()
        if (slot := self.slot) is not None and (reading := slot.reading) is not None:
            at_work.end_of_lost(reading)
        self._leave_request()
        self._stop_unread_clock()
        if self._is_saying_goodbye:
            self._port.connection_limiter.end_goodbye()
        if self._transport is None:
            return
        self._transport = self._heads = None
        self._stop_waiting()
        self._port.connection_limiter.unread.remove(self)
        if self._idle is not None:
            self._idle.stop()
        if self._writable is not None:
            self._writable.set()
        self._connections.discard(self)
        self._leave()
        if self._reader is not None:
            self._reader.connection_lost(exc)

    def _leave(self) -> None:
        if self._own_slot is not None:
            self._port.connection_limiter.leave(self._port.name, self._own_slot)
            self._own_slot = None  # which knows how to end this connection

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    # What the loop says, and aiohttp wants to know:

    def eof_received(self) -> bool | None:
        """The peer says no more."""
        return self._reader.eof_received() if self._reader is not None else None

    def pause_writing(self) -> None:
        """The peer does not take what it is sent."""
        if self._transport is not None:
            self._writable = asyncio.Event()
            self._port.connection_limiter.unread.add(self)
            self._unread = UnreadClock(self._transport, self._port.limits.request_timeout_s, self._cut_unread)
            if self._reader is not None:
                self._reader.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None
            self._port.connection_limiter.unread.remove(self)
            self._stop_unread_clock()
            if self._reader is not None:
                self._reader.resume_writing()

    def _stop_unread_clock(self) -> None:
        if self._unread is not None:
            self._unread.stop()
            self._unread = None

    def _cut_unread(self) -> None:
        self._port.connection_limiter.cut(Cut.UNREAD, self._address, "the peer does not take its answers")
        if self._transport is not None:
            self._transport.abort()


def connection_of(request: web.BaseRequest) -> HttpConnection | None:
    """The connection that a request came on; None when it is gone."""
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, HttpConnection) else None
