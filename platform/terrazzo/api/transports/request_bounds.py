"""Where a request begins and its head ends, in the bytes that a connection receives."""

from __future__ import annotations

HEAD_END = b"\r\n\r\n"


class RequestBounds:
    """Follows the bytes since the connection was last at rest: nothing asked, nothing owed.

    A connection on which a request came before the one before it was answered, or one whose length its head doesn't
    say, is never at rest again: how many requests its reader still has can't be told from outside.
    """

    __slots__ = (
        "_body_start",
        "_head_tail",
        "_is_countable",
        "_received",
        "first_read",
        "head_bytes",
        "is_at_rest",
        "is_head_complete",
    )

    def __init__(self) -> None:
        self.is_at_rest = True  # the next byte is the first of a head
        self.is_head_complete = False  # of the request that is arriving or being answered
        self.head_bytes = 0  # of a head that is not complete
        self.first_read = b""  # all that came since the rest, if it came at once
        self._head_tail = b""
        self._received = 0  # since the rest
        self._body_start = 0  # in that
        self._is_countable = True

    def receive(self, data: bytes) -> None:
        """Takes what came next."""
        if self.is_at_rest:
            self.is_at_rest, self.first_read, self._received, self._body_start = False, data, 0, 0
        else:
            self.first_read = b""
        self._received += len(data)
        if not self.is_head_complete:
            self._find_end(data)

    def _find_end(self, data: bytes) -> None:
        seen = self._head_tail + data
        end = seen.find(HEAD_END)
        self.is_head_complete = end >= 0
        if self.is_head_complete:
            self._body_start = self._received - len(seen) + end + len(HEAD_END)
        else:
            self._head_tail = seen[1 - len(HEAD_END) :]
            self.head_bytes += len(data)

    @property
    def after_head(self) -> int:
        """How many bytes have come behind the head of the request that was understood last."""
        return self._received - self._body_start

    def end_head(self) -> None:
        """The request has been understood."""
        self.is_head_complete, self.head_bytes, self._head_tail = True, 0, b""

    def end_request(self, body_bytes: int) -> None:
        """The request has been read to its end and its answer written: the next head may begin, or has begun."""
        self.is_head_complete = False
        self._is_countable &= 0 < self._body_start == self._received - body_bytes
        self.is_at_rest = self._is_countable
