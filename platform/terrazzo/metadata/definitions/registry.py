"""Definitions of the registry's entities; names and lengths are those of the API documents, section 1."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from terrazzo.database.entity import Entity, Uid, authors, define
from terrazzo.database.field import Field, flag, link, moment, number, reference, secret, structure, text
from terrazzo.database.partial_index import where
from terrazzo.domain.campaigns.waves import check_waves
from terrazzo.domain.certificates.authority import PEM_CHARS, parse_authority
from terrazzo.domain.command_payload import FIRMWARE_UNITS
from terrazzo.domain.control_table import check_control_rows
from terrazzo.domain.events.definition import check_event_definitions
from terrazzo.domain.mapping_table import mapping_rows_check
from terrazzo.domain.payloads.form import check_payload_form
from terrazzo.domain.script_rows import (
    calculate_rows_check,
    check_codes,
    check_object,
    check_retainer_rows,
    check_statistics_rows,
)
from terrazzo.domain.topic_permission import parse_topic_permission
from terrazzo.domain.variables.definition import check_variable_definitions
from terrazzo.metadata.company_limits import NAMES, PREFIX
from terrazzo.metadata.definitions.access import API_KEY, ROLES
from terrazzo.metadata.definitions.components import COMPONENTS
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.reasons import say

MAX_KEEP_ALIVE_S = 65_535
MAX_SESSION_EXPIRY_S = 2**32 - 1  # MQTT 5.0, 3.1.2.11.2: never expires
MAX_LISTED = 1_000  # terminals of an object, objects of a script
MAX_USES = 1_000_000  # of a claim key
MAX_TAGS = 16  # of a terminal
MAX_TAG = 32  # characters
MAX_WINDOW_S = 3_660 * 86_400
MAX_UPGRADE_S = 30 * 86_400
MAX_DAYS = 36_500
MAX_LIMIT = 2**50  # of a company's own limits
MIN_RSA_BITS = 2_048
MAX_RSA_BITS = 4_096  # a payload takes about 10 ms to open then


def check_terminal_uid(uid: str) -> None:
    """Checks a terminal's uid: it is one level of its MQTT topics and its MQTT client id.

    Raises:
        ValueError: it can't be either.
    """
    _check_name(uid)
    for character in "/+#":
        if character in uid:
            raise ValueError(say("contains_topic_sign", sign=character))


def check_username(name: str) -> None:
    """Checks a login name. Raises ``ValueError`` when it isn't printable text without spaces at its ends."""
    _check_name(name)


def check_rsa_key(pem: str) -> None:
    """Checks that a text is an unencrypted RSA private key in PEM form, of ``MIN_RSA_BITS`` to ``MAX_RSA_BITS``.

    Raises:
        ValueError: it is not.
    """
    try:
        key = load_pem_private_key(pem.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        raise ValueError(say("key_with_password")) from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(say("key_not_pem")) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError(say("key_not_rsa"))
    if not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        raise ValueError(say("expected_key_bits", least=MIN_RSA_BITS, most=MAX_RSA_BITS, got=key.key_size))


def read_key_list(value: Any) -> Any:
    """Splits text with keys separated by commas into a list; leaves lists and JSON text as they are."""
    if not isinstance(value, str) or value.lstrip().startswith("["):
        return value
    return [key.strip() for key in value.split(",")]


def check_key_list(keys: Any) -> None:
    """Checks that a value is a list of uids (text) or ids (integers). Raises ``ValueError``."""
    if not isinstance(keys, list):
        raise ValueError(say("expected_uids"))
    if len(keys) > MAX_LISTED:
        raise ValueError(say("too_many_elements", most=MAX_LISTED, got=len(keys)))
    for key in keys:
        if isinstance(key, bool) or not isinstance(key, int | str) or key == "":
            raise ValueError(say("expected_uids_got", got=key))


def read_tags(value: Any) -> Any:
    """The tags of a list, or of a text with commas, sorted and each once; JSON text as it is, to be read later."""
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            return value
        value = [tag.strip() for tag in value.split(",") if tag.strip()]
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        return value
    return sorted(set(value))


def check_tags(tags: Any) -> None:
    """Checks that a value is a list of at most ``MAX_TAGS`` tags. Raises ``ValueError``."""
    if not isinstance(tags, list):
        raise ValueError(say("expected_tags"))
    if len(tags) > MAX_TAGS:
        raise ValueError(say("too_many_tags", most=MAX_TAGS, got=len(tags)))
    for tag in tags:
        if not isinstance(tag, str) or not 0 < len(tag) <= MAX_TAG or tag != tag.strip() or not tag.isprintable():
            raise ValueError(say("expected_tags_of", most=MAX_TAG, got=tag))
        if "," in tag:
            raise ValueError(say("tag_with_comma", tag=tag))


def _check_name(name: str) -> None:
    if name != name.strip():
        raise ValueError(say("blank_at_an_end"))
    if not name.isprintable():
        raise ValueError(say("contains_control_character"))


def _objects(**rules: Any) -> Field:
    """The column ``object_list``: ids of objects as texts, in order."""
    return structure("object_list", read=read_key_list, check=check_key_list, **rules)


KEPT_KINDS = ("events", "labels", "commands", "messages", "audit", "series")
"""Of what companies' records say for how many days it is kept: ``retention_<kind>``."""

COMPANY = define(
    "company",
    text("name", 64, required=True),
    text("description", 255),
    text("contact", 64),
    text("email", 128),
    text("phone", 32),
    text("address", 255),
    flag("needs_second_factor"),  # of each of its users
    *(number(f"retention_{kind}", maximum=MAX_DAYS) for kind in KEPT_KINDS),
    *(number(PREFIX + name, maximum=MAX_LIMIT) for name in NAMES),
    *authors(),
    company="id",
)

USER = define(
    "user",
    text("password_hash", 255, required=True, internal=True),
    number("token_epoch", internal=True),  # tokens of an earlier epoch are revoked
    text("role", 16, default="viewer", choices=ROLES),
    text("head_image", 255),
    text("description", 255),
    text("mobile", 32),
    text("email", 128),
    flag("is_active", default=1),
    flag("is_super"),
    flag("is_default"),
    flag("has_second_factor", read_only=True),
    flag("by_sso"),  # may log in by single sign-on; made by it, it has no password
    text("sso_hash", 64, internal=True),  # SHA-256 of issuer and subject; empty: never logged in there
    uid=Uid.GIVEN,
    key=text("username", 64, default=None, required=True, check=check_username),
    created="created_at",
    modified="updated_at",
)

sa.Index(None, USER.table.c.sso_hash)

CONFIGURATION = define(
    "configuration",
    text("name", 64, required=True),
    text("description", 255),
    text("hardware", 64),
    link("mcu_file", 128),
    text("mcu_version", 32),
    link("remosu_file", 128),
    text("remosu_version", 32),
    link("lua_file", 128),
    text("lua_version", 32),
    structure("terminal_script", unset="{}"),
    structure("config_script", unset="{}"),
    structure("payload", unset="{}", check=check_payload_form),  # how what its terminals report is read; {}: objects
    flag("deliver"),  # 1: config_script is sent to the terminals, and held against what they report
    *authors(),
)

TERMINAL = define(
    "terminal",
    text("name", 64, required=True),
    text("description", 255),
    text("type", 16, required=True),
    text("maker", 64),
    reference("config_id", "configuration", required=True),
    text("mode", 16, required=True, choices=("pwd", "auto", "cert")),
    text("username", 32, required=True),
    secret("pin", 16, required=True),
    text("access", 16, default="all", choices=("all", "pub", "sub")),
    text("topic", 64, default="all", check=parse_topic_permission),
    text("server", 32),
    number("session_expiry", maximum=MAX_SESSION_EXPIRY_S),
    number("keep_alive", maximum=MAX_KEEP_ALIVE_S),
    flag("encryption"),
    flag("dixie"),
    secret("rsa_privatekey", 16_384, check=check_rsa_key),
    flag("is_route"),
    *authors(),
    moment("activated", read_only=True),
    text("series", 96, default=None, internal=True),  # null: its series are named by the uid
    structure("tags", default=[], read=read_tags, check=check_tags),
    number("claim_key_id", default=None, internal=True),  # by which it came in; the key may be gone
    uid=Uid.GIVEN,
    key=text("uid", 64, default=None, required=True, check=check_terminal_uid),
    sorts=("created", "last_modified", "username", "config_id", "tags", "type"),
)

CLAIM_KEY = define(
    "claim_key",
    text("name", 64, required=True),
    text("description", 255),
    text("key_hash", 64, required=True, internal=True),
    number("uses", default=1, minimum=1, maximum=MAX_USES),
    number("used", read_only=True),
    moment("expires"),
    text("prefix", 64),  # of the uids of terminals; empty: any
    reference("config_id", "configuration", required=True),
    text("type", 16, default="Other"),
    text("mode", 16, default="pwd", choices=("pwd", "auto", "cert")),
    text("access", 16, default="all", choices=("all", "pub", "sub")),
    text("topic", 64, default="all", check=parse_topic_permission),
    *authors(),
)

TERMINAL_AUTHORITY = define(
    "terminal_authority",
    text("name", 64, required=True),
    text("description", 255),
    text("certificate", PEM_CHARS, required=True, check=parse_authority),  # PEM
    text("subject", 255, read_only=True),
    text("fingerprint", 64, read_only=True),  # SHA-256, hexadecimal
    text("subject_hash", 64, internal=True),
    moment("expires", read_only=True),
    *authors(),
)

sa.Index(None, TERMINAL_AUTHORITY.table.c.subject_hash)

MAPPING = define(
    "mapping",
    text("name", 64, required=True),
    text("description", 255),
    structure("script", required=True, check_steps=mapping_rows_check),
    structure("addition", unset="[]"),
    structure("template"),
    structure("events", unset="{}", check=check_event_definitions),  # what is said of them, by code
    *authors(),
    structure("variables", unset="{}", check=check_variable_definitions),  # as events
)

CONTROL = define(
    "control",
    text("name", 64, required=True),
    text("description", 255),
    structure("script", required=True, check=check_control_rows),
    structure("template"),
    *authors(),
)

CUSTOMER = define(
    "customer",
    text("name", 64, required=True),
    text("description", 255),
    text("email", 128),
    text("contact", 64),
    text("mobile", 32),
    text("phone", 32),
    text("province", 64),
    text("city", 64),
    text("address", 255),
    secret("secret", 64),
    text("responsible", 64),
    text("responsible_phone", 32),
    text("reference", 64),
    flag("is_available", default=1),
)

OBJECT = define(
    "object",
    text("name", 64, required=True),
    text("description", 255),
    text("image", 128),
    text("province", 16),
    text("city", 16),
    number("file_id", default=None),
    reference("mapping_id", "mapping"),
    reference("control_id", "control"),
    reference("customer_id", "customer"),
    structure("terminal_list", read=read_key_list, check=check_key_list),  # uids in order
    _objects(),
    text("model", 32),
    text("serial_no", 32),
    text("gis", 128),
    secret("secret", 16),  # the follow password
    text("control", 16),
    structure("addition", unset="[]"),
    structure("template", unset="{}"),
    structure("script", unset="{}"),
    *authors(),
    uid=Uid.FROM_ID,
    sorts=("serial_no", "province", "city"),
)
sa.Index("ix_object_with_objects", OBJECT.table.c.id, **where("object_list IS NOT NULL"))

RETAINER = define(
    "retainer",
    text("name", 64, required=True),
    text("description", 255),
    _objects(required=True),
    flag("is_active", read_only=True),
    structure("script", required=True, check=check_retainer_rows),
    *authors(),
)

STATISTICS = define(
    "statistics",
    text("name", 64, required=True),
    text("description", 255),
    _objects(required=True),
    flag("is_active", read_only=True),
    structure("script", required=True, check=check_statistics_rows),
    *authors(),
)

CALCULATE = define(
    "calculate",
    text("name", 64, required=True),
    text("description", 255),
    _objects(),  # none: those of the statistics
    flag("is_active", read_only=True),
    structure("script", required=True, check_steps=calculate_rows_check),
    *authors(),
)

BALANCE = define(
    "balance",
    text("name", 64, required=True),
    text("description", 255),
    _objects(required=True),
    flag("is_active", read_only=True),
    text("target_code", 64, required=True, default=None),
    structure("input_codes", required=True, read=read_key_list, check=check_codes),
    number("window", default=86_400, minimum=1, maximum=MAX_WINDOW_S),  # seconds
    *authors(),
)

DASHBOARD = define(
    "dashboard",
    text("name", 64, required=True),
    text("description", 255),
    text("category", 16),
    structure("script", required=True, check=check_object),
    structure("template", unset="{}"),
    *authors(),
)

PROJECT = define(
    "project",
    text("name", 64, required=True),
    text("description", 255),
    flag("is_active", read_only=True),
    *authors(),
)

CAMPAIGN = define(
    "campaign",
    text("name", 64, required=True),
    text("description", 255),
    reference("config_id", "configuration", required=True),
    text("unit", 8, required=True, default=None, choices=FIRMWARE_UNITS),
    text("version", 32),  # the target; the configuration's unless given
    link("file", 128, read_only=True),  # the configuration's at creation
    structure("terminal_list", read=read_key_list, check=check_key_list),  # none: all of the configuration
    structure("waves", check=check_waves),
    number("failure_percent", default=20, minimum=1, maximum=100),
    number("failure_minimum", default=5, minimum=1),
    number("retries", default=3, maximum=100),
    number("timeout_s", default=1_800, minimum=1, maximum=MAX_UPGRADE_S),
    text("state", 16, default="created", read_only=True),
    text("reason", 255, read_only=True),
    number("wave", read_only=True),
    moment("started", read_only=True),
    moment("ended", read_only=True),
    *authors(),
)

SCRIPTS = (RETAINER, STATISTICS, CALCULATE, BALANCE)
"""The entities that are started and stopped and have an ``object_list``."""

ENTITIES: tuple[Entity, ...] = (
    COMPANY,
    USER,
    CONFIGURATION,
    TERMINAL,
    CLAIM_KEY,
    TERMINAL_AUTHORITY,
    MAPPING,
    CONTROL,
    CUSTOMER,
    OBJECT,
    *SCRIPTS,
    DASHBOARD,
    PROJECT,
    CAMPAIGN,
    *COMPONENTS,
    RULE,
    API_KEY,
)
