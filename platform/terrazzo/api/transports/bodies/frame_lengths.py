"""How long the messages of a WebSocket are, seen in its bytes before aiohttp has them [RFC 6455, 5.2]. Pure."""

from __future__ import annotations

_CONTROL = 8  # opcodes from here on are no messages
_CONTINUES = 0
_MASKED = 4  # bytes of the mask
_LONG = {126: 2, 127: 8}  # bytes that the length takes


class FrameLengths:
    """Follows the frames that a client sends, from the first one on, up to one that makes a message too long.

    Args:
        most_bytes: of a message.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._head = bytearray()
        self._left = 0  # of the frame's payload
        self._message = 0  # of the latest message, as far as its frames say

    def feed(self, data: bytes) -> int:
        """Takes what came next; how much of it is before a frame that makes a message too long, all where none does."""
        start = at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            start = start if self._head else at  # of one that began in earlier bytes all here is kept
            self._head.append(data[at])
            at += 1
            if self._is_complete() and self._end_head() > self._most_bytes:
                return start
        return len(data)

    def _is_complete(self) -> bool:
        head = self._head
        return len(head) >= 2 and len(head) == 2 + _LONG.get(head[1] & 127, 0) + (_MASKED if head[1] & 128 else 0)

    def _end_head(self) -> int:
        head = self._head
        opcode, length = head[0] & 15, head[1] & 127
        if length in _LONG:
            length = int.from_bytes(head[2 : 2 + _LONG[length]], "big")
        head.clear()
        self._left = length
        if opcode >= _CONTROL:
            return 0
        self._message = length + (self._message if opcode == _CONTINUES else 0)
        return self._message
