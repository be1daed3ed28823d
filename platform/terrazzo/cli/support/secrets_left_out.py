"""What of a configuration may be shown, and how known secrets are taken out of any other text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from terrazzo.access.tokens import KEY_FILE as TOKEN_KEY_FILE
from terrazzo.access.users import PASSWORD_FILE
from terrazzo.campaigns.download_links import KEY_FILE as LINK_KEY_FILE
from terrazzo.config.sections import Config
from terrazzo.crypto.secrets import KEY_FILE, OLD_KEY_FILE
from terrazzo.demo.passwords import PASSWORD_FILE as DEMO_PASSWORD_FILE

LEFT_OUT = "<left out>"
IS_SET = "<set>"

SHOWN_TEXTS = frozenset(
    {
        *("http.host", "websocket.host", "tcp.host", "mqtt.host", "time.zone", "files.types"),
        *(f"api.{name}_base" for name in ("grid", "mosaic", "service", "offline", "object", "stats", "pusher")),
        *("api.messenger_base", "api.retainer_base"),
    }
)
"""Keys whose texts are shown. Any other text is only said to be set: a new key is left out until it stands here."""

_SECRET_FILES = (
    *(TOKEN_KEY_FILE, KEY_FILE, OLD_KEY_FILE, LINK_KEY_FILE, PASSWORD_FILE, DEMO_PASSWORD_FILE),
    f"{TOKEN_KEY_FILE}.old",
)
_MOST_FILE_BYTES = 65_536
_LONG_CHARS = 12
_OWN_NAME = "terrazzo"  # a user, a database or a group may be called so; it says nothing
_LEAST_CHARS = 4  # of a secret that is looked for; a shorter one would take ordinary words out
_OF_A_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s\"'<>]+")
_BEARER = re.compile(r"(?i)(bearer|basic|token|apikey)[ =:]+[A-Za-z0-9._~+/=-]{8,}")
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential")


def shown_config(config: Config) -> dict[str, Any]:
    """All keys by section: numbers, switches and words of a closed set as they are, of texts whether there is one."""
    return {
        section.encode_name: _shown(getattr(config, section.name), section.encode_name) for section in _fields(config)
    }


def _shown(value: Any, key: str, kind: inspect.Type | None = None) -> Any:
    if isinstance(value, msgspec.Struct):
        kinds = {field.encode_name: field.type for field in _info(type(value)).fields}
        return {
            field.encode_name: _shown(
                getattr(value, field.name), f"{key}.{field.encode_name}", kinds[field.encode_name]
            )
            for field in _fields(value)
        }
    if isinstance(value, tuple | list):
        return [_shown(each, f"{key}[]") for each in value]
    if isinstance(value, Mapping):
        return {"entries": len(value)}
    if isinstance(value, str):
        return value if not value or key in SHOWN_TEXTS or _is_closed(kind, value) else IS_SET
    return value if isinstance(value, bool | int | float) or value is None else IS_SET


def _fields(value: msgspec.Struct) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(value)


def _info(kind: type[msgspec.Struct]) -> inspect.StructType:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found


def _is_closed(kind: inspect.Type | None, value: str) -> bool:
    """Whether a text is one of those that the key's type lists."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return any(isinstance(each, inspect.LiteralType) and value in each.values for each in kinds)


class Scrubber:
    """Takes secrets out of text: those that this process can know, and what has the form of one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        given = {each for each in secrets if len(each) >= _LEAST_CHARS and each != _OWN_NAME}
        forms = sorted(given | {json.dumps(each)[1:-1] for each in given}, key=len, reverse=True)
        self._known = re.compile("|".join(map(_pattern, forms))) if forms else None

    def clean(self, text: str) -> str:
        """The text without them, and without all of an address that follows its scheme."""
        if self._known is not None:
            text = self._known.sub(LEFT_OUT, text)
        return _BEARER.sub(rf"\1 {LEFT_OUT}", _OF_A_SCHEME.sub(rf"\1{LEFT_OUT}", text))


def _pattern(secret: str) -> str:
    """A short one is looked for as a word: ``mqtt`` as a user name must not take the word out of others."""
    found = re.escape(secret)
    return found if len(secret) >= _LONG_CHARS else rf"(?<![A-Za-z0-9_]){found}(?![A-Za-z0-9_])"


def known_secrets(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """Texts of the configuration that are not shown, of the environment, and of the key files of the data folder."""
    yield from _hidden_texts(config, "")
    yield from (value for name, value in environ.items() if _SECRET_NAME.search(name))
    for name in _SECRET_FILES:
        yield from _words_in(config.data_dir / name)


def _hidden_texts(value: Any, key: str, kind: inspect.Type | None = None) -> Iterator[str]:
    if isinstance(value, msgspec.Struct):
        kinds = {field.encode_name: field.type for field in _info(type(value)).fields}
        for field in _fields(value):
            name = f"{key}.{field.encode_name}".lstrip(".")
            yield from _hidden_texts(getattr(value, field.name), name, kinds[field.encode_name])
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _hidden_texts(each, f"{key}[]")
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _hidden_texts(each, f"{key}{{}}")
    elif isinstance(value, str) and key not in SHOWN_TEXTS and not _is_closed(kind, value):
        yield value


def _words_in(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_FILE_BYTES)
    except OSError:
        return
    for line in text.splitlines():
        yield from (line.strip(), *line.split()[1:])
