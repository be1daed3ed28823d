"""Definitions of the component interfaces' entities (docs/components.md): service, offline data, files, groups."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from terrazzo.database.entity import Uid, authors, define
from terrazzo.database.field import flag, moment, number, reference, structure, text, type_name
from terrazzo.reasons import say

SERVICE_SOURCES = ("alert", "event", "fault", "object")
FILE_TYPES = ("datasheet", "control", "export", "design", "video", "reference", "other")
MAX_FILES = 100  # of one file record
MAX_OPTIONS = 1_000  # of one offline project, and of each level below
MAX_COLLECTED = 16_384  # characters of an offline value
_FILE_KEYS = ("name", "url", "uid")
_OPTION_LEVELS = (
    (("OptionID", "OptionName"), "OptionValue"),
    (("OptionValueID", "OptionValueName"), "Parameter"),
    (("ParameterID", "ParameterName", "ParameterValue"), None),
)
"""For each level: the keys of an element, and the key of its next level (section 2 "Offline project")."""


def check_options(options: Any) -> None:
    """Checks the options of an offline project: an array of options, each with values, each value with parameters.

    Raises:
        ValueError: names the element that is wrong.
    """
    _check_level(options, 0, "option")


def check_file_list(files: Any) -> None:
    """Checks a list of attached files, each ``{name, url, uid}``.

    Raises:
        ValueError: names the file that is wrong.
    """
    if not isinstance(files, list):
        raise ValueError(say("expected_file_array"))
    if len(files) > MAX_FILES:
        raise ValueError(say("too_many_files_got", most=MAX_FILES, got=len(files)))
    for position, file in enumerate(files, 1):
        if not isinstance(file, dict):
            raise ValueError(say("file_expected_object", file=position, got=type_name(file)))
        for key in _FILE_KEYS:
            if not isinstance(file.get(key), str):
                raise ValueError(say("file_expected_text", file=position, name=key, got=type_name(file.get(key))))
        if unknown := sorted(set(file) - set(_FILE_KEYS)):
            raise ValueError(say("file_unknown_key", file=position, name=unknown[0][:64], names=", ".join(_FILE_KEYS)))


def _check_level(elements: Any, level: int, place: str) -> None:
    names, below = _OPTION_LEVELS[level]
    if not isinstance(elements, list):
        raise ValueError(say("place_expected_array", place=place, got=type_name(elements)))
    if len(elements) > MAX_OPTIONS:
        raise ValueError(say("place_too_many_elements", place=place, most=MAX_OPTIONS, got=len(elements)))
    for position, element in enumerate(elements, 1):
        here = f"{place} {position}"
        if not isinstance(element, dict):
            raise ValueError(say("place_expected_object", place=here, got=type_name(element)))
        for name in names:
            value = element.get(name)
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError(say("place_expected_text_or_number", place=here, name=name, got=type_name(value)))
        if unknown := sorted(set(element) - {*names, below}):
            raise ValueError(
                say(
                    "place_unknown_key",
                    place=here,
                    name=unknown[0][:64],
                    names=", ".join((*names, *filter(None, [below]))),
                )
            )
        if below is not None:
            _check_level(element.get(below, []), level + 1, f"{here}: {below}")


SERVICE = define(
    "service",
    text("name", 64, required=True),
    text("description", 255),
    reference("object_id", "object", required=True),
    text("category", 64),
    text("file", 128),
    number("staff_id"),
    text("staff_name", 32),
    moment("service_at", read_only=True),
    text("source", 32, default="object", choices=SERVICE_SOURCES),
    text("reference", 64),
    flag("is_available", default=1),
    sorts=("service_at",),
)

sa.Index(None, SERVICE.table.c.object_id, SERVICE.table.c.service_at, SERVICE.table.c.id)  # an object's, by time

COLLECT = define(
    "collect",
    text("name", 64, required=True),
    text("description", 255),
    text("block_id", 64),
    text("class_id", 32),
    flag("is_active", default=1),
    structure("option", check=check_options, unset="[]"),
    structure("script"),
    number("created_by"),
    number("last_modified_by"),
    flag("is_available", default=1),
)

COLLECTOS = define(
    "collectos",
    text("name", 64),
    text("description", 255),
    text("class_id", 32),
    reference("project_id", "collect", required=True),
    reference("object_id", "object", required=True),
    text("value", MAX_COLLECTED),
    text("file", 32),
    text("collector", 32),
    moment("collect_at", read_only=True),
    text("reference", 64),
    flag("is_available", default=1),
    sorts=("collect_at",),
)
sa.Index(None, COLLECTOS.table.c.object_id, COLLECTOS.table.c.project_id, COLLECTOS.table.c.id)  # the latest of each
sa.Index(None, COLLECTOS.table.c.object_id, COLLECTOS.table.c.collect_at, COLLECTOS.table.c.id)  # an object's, by time

GROUP = define(
    "object_group",
    text("name", 64, required=True),
    text("description", 255),
    *authors(),
)

GROUP_MAP = define(
    "object_group_map",
    reference("group_id", "object_group", required=True),
    reference("object_id", "object", required=True),
    *authors(),
)
sa.Index(None, GROUP_MAP.table.c.group_id, GROUP_MAP.table.c.object_id, unique=True)

OBJECT_DASHBOARD = define(
    "object_dashboard",
    reference("object_id", "object", required=True),
    reference("dashboard_id", "dashboard", required=True),
    text("category", 16, required=True, default=None),
    *authors(),
)
sa.Index(None, OBJECT_DASHBOARD.table.c.object_id, OBJECT_DASHBOARD.table.c.dashboard_id, unique=True)

FILE = define(
    "file",
    text("name", 64, required=True),
    text("description", 255),
    text("type", 16, default="other", choices=FILE_TYPES),
    structure("file", check=check_file_list, unset="[]"),
    *authors(),
)

UPLOAD = define(
    "upload",
    text("name", 128, required=True),
    text("type", 128, required=True),  # media type
    number("size", required=True),  # bytes
    text("sha256", 64, required=True),
    number("created_by"),
    uid=Uid.GIVEN,
    key=text("uid", 32, default=None, required=True),
)
"""The record of an uploaded file; its content is on disk, in a file named after the uid."""

COMPONENTS = (SERVICE, COLLECT, COLLECTOS, GROUP, GROUP_MAP, OBJECT_DASHBOARD, FILE, UPLOAD)
