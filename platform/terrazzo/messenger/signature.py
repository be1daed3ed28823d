"""How webhooks are signed: HMAC-SHA256 over the time, a dot and the body.

A receiver computes ``hex(HMAC-SHA256(secret, timestamp + "." + body))``, compares it in constant time with what stands
after ``sha256=``, and refuses times that are more than five minutes away, so that nothing can be played back.
"""

from __future__ import annotations

import hashlib
import hmac

TIMESTAMP = "X-Terrazzo-Timestamp"  # unix seconds
SIGNATURE = "X-Terrazzo-Signature"  # sha256=<64 hexadecimal digits>
DELIVERY = "X-Terrazzo-Delivery"  # the same of every attempt


def sign(body: bytes, secret: str, *, time_s: int) -> str:
    """The signature of a body at ``time_s`` (unix seconds), as 64 hexadecimal digits."""
    return hmac.new(secret.encode(), f"{time_s}.".encode() + body, hashlib.sha256).hexdigest()


def signed_headers(body: bytes, secret: str, *, time_s: int, delivery: str) -> dict[str, str]:
    """The headers of a webhook; ``delivery`` is the message's uid, the same in every attempt."""
    return {TIMESTAMP: str(time_s), SIGNATURE: f"sha256={sign(body, secret, time_s=time_s)}", DELIVERY: delivery}
