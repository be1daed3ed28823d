"""Names the owners of what was stored before owners were kept (formats 1 and 2); may be cut off anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ..delivery.session import Session
from ..hooks import FormerOwners
from . import keys
from .database import KeyValues
from .image import Image
from .records import encode_session

_PIECE_BYTES = 4 << 20  # about what one commit takes


def name_owners(image: Image, owners: FormerOwners, read: Callable[[bytes], bytes | None]) -> Iterator[KeyValues]:
    """Sets the owners in ``image``; yields the records to be changed for that, each piece all or not at all.

    ``read``: a record by its key; a message in the image may be without its payload.
    """
    values: dict[bytes, bytes | None] = {}
    size = 0
    for message in image.unowned:
        owned = msgspec.structs.replace(message, owner=owners.of_topic(message.topic.decode()))
        image.retained.append(owned)
        was = keys.RETAINED + message.topic
        values[keys.retained_key(owned.owner, owned.topic)], values[was] = read(was), None
        size += owned.size
        if size > _PIECE_BYTES:
            yield values
            values, size = {}, 0
    for session in image.sessions:
        if session.head is not None and session.head.owner is None:
            session.head = msgspec.structs.replace(session.head, owner=owners.of_client(session.head.client_id))
            values[keys.session_prefix(session.number) + keys.HEAD] = encode_session(session.head)
            session.was_unowned = True
    if values:
        yield values


def drop_others(session: Session, owners: FormerOwners) -> None:
    """Drops what waits in a session on topics that aren't its owner's."""
    session.drop_forbidden(lambda topic: owners.of_topic(topic.decode()) == session.owner)
