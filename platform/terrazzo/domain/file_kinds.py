"""Which files may be uploaded: endings of names, and contents that fit them. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from typing import NamedTuple

from terrazzo.errors import BadParameter
from terrazzo.reasons import say

MAX_NAME = 128  # characters of a file's name
_MOST_RAW = 4 * MAX_NAME  # before it is normalized and trimmed
HEAD_BYTES = 4_096  # from the beginning of a content, by which its kind is checked
BINARY = "application/octet-stream"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OLE = (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",)
_OFFICE = "application/vnd.openxmlformats-officedocument"


class FileKind(NamedTuple):
    """A kind of file, known by the ending of its name: media type, first bytes, whether browsers may show it."""

    media_type: str
    begins: tuple[bytes, ...] = ()  # a content begins with one of these; empty: with anything
    at: int = 0  # offset of these bytes
    is_text: bool = False
    is_inline: bool = False  # a browser may show it in place: nothing in it can run as a script


def _text(media_type: str) -> FileKind:
    return FileKind(media_type, is_text=True)


KINDS: Mapping[str, FileKind] = {
    "pdf": FileKind("application/pdf", (b"%PDF-",), is_inline=True),
    "png": FileKind("image/png", (b"\x89PNG\r\n\x1a\n",), is_inline=True),
    "jpg": FileKind("image/jpeg", (b"\xff\xd8\xff",), is_inline=True),
    "jpeg": FileKind("image/jpeg", (b"\xff\xd8\xff",), is_inline=True),
    "gif": FileKind("image/gif", (b"GIF87a", b"GIF89a"), is_inline=True),
    "webp": FileKind("image/webp", (b"WEBP",), 8, is_inline=True),
    "bmp": FileKind("image/bmp", (b"BM",), is_inline=True),
    "mp4": FileKind("video/mp4", (b"ftyp",), 4, is_inline=True),
    "mov": FileKind("video/quicktime", (b"ftyp", b"moov", b"wide", b"mdat"), 4),
    "webm": FileKind("video/webm", (b"\x1a\x45\xdf\xa3",), is_inline=True),
    "mp3": FileKind("audio/mpeg", (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    "doc": FileKind("application/msword", _OLE),
    "xls": FileKind("application/vnd.ms-excel", _OLE),
    "ppt": FileKind("application/vnd.ms-powerpoint", _OLE),
    "docx": FileKind(f"{_OFFICE}.wordprocessingml.document", _ZIP),
    "xlsx": FileKind(f"{_OFFICE}.spreadsheetml.sheet", _ZIP),
    "pptx": FileKind(f"{_OFFICE}.presentationml.presentation", _ZIP),
    "zip": FileKind("application/zip", _ZIP),
    "gz": FileKind("application/gzip", (b"\x1f\x8b",)),
    "tgz": FileKind("application/gzip", (b"\x1f\x8b",)),
    "tar": FileKind("application/x-tar", (b"ustar",), 257),
    "7z": FileKind("application/x-7z-compressed", (b"7z\xbc\xaf\x27\x1c",)),
    "txt": _text("text/plain"),
    "log": _text("text/plain"),
    "md": _text("text/markdown"),
    "csv": _text("text/csv"),
    "json": _text("application/json"),
    "xml": _text("application/xml"),
    "yaml": _text("application/yaml"),
    "toml": _text("application/toml"),
    "lua": _text("text/x-lua"),
    "hex": _text("text/plain"),  # Intel HEX
    "bin": FileKind(BINARY),
    "img": FileKind(BINARY),
    "fw": FileKind(BINARY),
    "dwg": FileKind("image/vnd.dwg", (b"AC10",)),
    "dxf": FileKind("image/vnd.dxf"),
}
"""Without HTML and SVG on purpose: a browser would run scripts in them under this platform's address."""


def clean_name(name: str) -> str:
    """A file's name without folders, control characters and leading dots.

    Raises:
        BadParameter: nothing is left, or the name is too long.
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(character for character in last if unicodedata.category(character)[0] != "C")
    if len(kept) > _MOST_RAW:  # what many combining marks are normalized to takes time in proportion to their square
        raise BadParameter("name", say("too_many_characters", most=MAX_NAME, got=len(kept)))
    found = unicodedata.normalize("NFC", kept).strip().lstrip(". ").rstrip(". ")
    if not found:
        raise BadParameter("name", say("no_file_name", name=name[:64]))
    if len(found) > MAX_NAME:
        raise BadParameter("name", say("too_many_characters", most=MAX_NAME, got=len(found)))
    return found


def kind_of(name: str, allowed: Collection[str]) -> FileKind:
    """The kind of a file, by the ending of its name.

    Raises:
        BadParameter: files of this kind may not be uploaded.
    """
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending not in allowed:
        shown = f".{ending[:16]}" if ending else "a name without an ending"
        raise BadParameter("file", say("file_type_not_allowed", name=shown, allowed=", ".join(sorted(allowed))))
    return KINDS.get(ending, FileKind(BINARY))


def check_head(kind: FileKind, name: str, head: bytes) -> None:
    """Checks that a content is what its name says, by its first ``HEAD_BYTES``.

    Raises:
        BadParameter: it is not; names what was expected.
    """
    found = head[kind.at :]
    if kind.begins and not found.startswith(kind.begins):
        raise BadParameter("file", say("file_content_is_not", name=name, kind=kind.media_type))
    if kind.is_text and b"\0" in head:
        raise BadParameter("file", say("file_content_not_text", name=name, kind=kind.media_type))
