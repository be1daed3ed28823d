"""``Sender``: sends the queue's messages in order, and removes those that the remote broker has acknowledged."""

from __future__ import annotations

import asyncio
from typing import Any

from terrazzo.ports.bridge import BridgeMessage, BridgeStatus, MessageProperties
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_adapters.bridge.link import RemoteLink
from terrazzo_adapters.bridge.queue import MessageQueue
from terrazzo_adapters.bridge.settings import TopicRule

_TURN = 200  # messages before the event loop runs other tasks
_QUOTA_EXCEEDED = 0x97


class Sender:
    """Sends over one connection; made anew for each.

    Args:
        sent: see ``RemoteClient``; what it has of earlier connections is sent by the link, or forgotten.
        broker_id: the id that each message is marked with.
    """

    def __init__(
        self,
        link: RemoteLink,
        queue: MessageQueue,
        *,
        sent: dict[int, int],
        rules: tuple[TopicRule, ...],
        broker_id: str,
        status: BridgeStatus,
        log: SparseLog,
    ) -> None:
        self._link = link
        self._queue = queue
        self._rules = rules
        self._broker_id = broker_id
        self._status = status
        self._log = log
        self._sent = sent
        self._again: set[int] = set()  # numbers that the link sends by itself, because they were on their way before
        self._finishing: asyncio.Future[None] | None = None  # done when nothing is on its way any more
        link.on_session = self._on_session
        link.on_puback = self._on_puback
        link.on_drained = self.pump

    def _on_session(self, is_present: bool) -> None:
        """Whether the remote broker knows the session: what it has not acknowledged of it is on its way again."""
        if not is_present:
            self._sent.clear()
        self._again = set(self._sent.values())

    def pump(self) -> None:
        """Sends waiting messages, as many as the remote broker's window and the socket take now."""
        if self._link.lost.done() or self._finishing is not None:
            return
        for _ in range(_TURN):
            if len(self._sent) >= self._link.window:
                break
            entry = self._queue.next()
            if entry is None:
                break
            if entry[0] in self._again:
                self._again.discard(entry[0])
            elif not self._send(*entry):
                return
        else:
            if not self._link.is_congested:
                asyncio.get_running_loop().call_soon(self._link.guard, self.pump)

    def _send(self, number: int, message: BridgeMessage) -> bool:
        """Sends one message; False if the connection has ended, or takes no more now."""
        rule, topic = self._remote_name(message.topic)
        if message.expires_us and message.expires_us <= now_us():
            self._status.expired += 1
            self._queue.done(number)
            return True
        if rule is None:  # queued under an earlier configuration
            self._drop(number, f"no rule for {message.topic!r:.100} any more")
            return True
        qos = min(message.qos, rule.qos)
        try:
            identifier = self._link.publish(
                topic, message.payload, qos=qos, retain=message.retain, properties=self._properties(message)
            )
        except ValueError as error:
            self._drop(number, f"{topic!r:.100}: {error}")
            return True
        if identifier is None:
            return False
        if qos:
            self._sent[identifier] = number
            return not self._link.lost.done()
        self._status.sent += 1
        self._queue.done(number)
        return not self._link.is_congested

    def _remote_name(self, topic: str) -> tuple[TopicRule | None, str]:
        for rule in self._rules:
            name = rule.to_remote(topic)
            if name is not None:
                return rule, name
        return None, ""

    def _properties(self, message: BridgeMessage) -> dict[str, Any]:
        given = message.marked(self._broker_id).properties or MessageProperties()
        values: dict[str, Any] = {"UserProperty": list(given.user_properties)}
        if given.payload_format_indicator:
            values["PayloadFormatIndicator"] = given.payload_format_indicator
        if message.expires_us:
            values["MessageExpiryInterval"] = max(1, -(-(message.expires_us - now_us()) // 1_000_000))
        texts = {"ContentType": given.content_type, "ResponseTopic": given.response_topic}
        values |= {name: text for name, text in texts.items() if text is not None}
        if given.correlation_data is not None:
            values["CorrelationData"] = given.correlation_data
        return values

    def _on_puback(self, identifier: int, reason: int) -> None:
        number = self._sent.pop(identifier, None)
        if number is None:
            return
        if reason == _QUOTA_EXCEEDED:  # not now: the message stays, and is sent again over the next connection
            self._link.cut("the remote broker has no room (0x97)")
        elif reason >= 0x80:
            self._drop(number, f"refused with 0x{reason:02x}")
        else:
            self._status.sent += 1
            self._queue.done(number)
        if self._finishing is None:
            asyncio.get_running_loop().call_soon(self._link.guard, self.pump)
        elif not self._sent and not self._finishing.done():
            self._finishing.set_result(None)

    async def finish(self, timeout_s: float) -> None:
        """Stops sending, and waits for the acknowledgements of messages that were sent."""
        self._finishing = asyncio.get_running_loop().create_future()
        if self._sent:
            await asyncio.wait({self._finishing}, timeout=timeout_s)

    def _drop(self, number: int, why: str) -> None:
        self._status.refused_by_remote += 1
        self._status.last_error = f"a message was not sent: {why}"
        self._log.warning("%s", self._status.last_error)
        self._queue.done(number)
