"""Whatever fits the OpenAPI document, and whatever doesn't: no 5xx, no answer outside its schema, no internal error."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
import requests
import schemathesis
from contract_world import World, filled_platform
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from length import rounds
from terrazzo.api.openapi.document import GATEWAY_PATH, build_document
from terrazzo.api.operations.table import TABLE

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
REQUESTS = int(os.environ.get("TERRAZZO_SCHEMATHESIS_REQUESTS", rounds(3, 20)))  # of each kind to each operation
BUDGET_S = 5.0 * REQUESTS  # of all; whatever comes after it sends one request of each kind
ENDS_SESSIONS = {"logout"}
"""Actions that end the token that they are sent with; they are sent with a token of their own."""


@cache
def document() -> dict[str, Any]:
    return json.loads(msgspec.json.encode(build_document()))


@cache
def schema() -> Any:
    """The document as schemathesis has it: once, because what it works out of a document it keeps for good."""
    return schemathesis.openapi.from_dict(document(), config=SchemathesisConfig())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A platform of its own: what is sent here changes and deletes."""
    with filled_platform(tmp_path_factory.mktemp("schemathesis") / "data") as filled:
        yield filled


@pytest.fixture(scope="module")
def deadline() -> float:
    return time.monotonic() + BUDGET_S


def check(world: World, operation: Any, *, deadline: float) -> None:
    """Sends what fits the document, and what doesn't."""
    with requests.Session() as session:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            most = REQUESTS if time.monotonic() < deadline else 1
            send(world, operation, mode, session=session, most=most)


def send(world: World, operation: Any, mode: GenerationMode, *, session: requests.Session, most: int) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=most,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=quiet,
    )
    def run(case: Any) -> None:
        headers = {"Authorization": f"Bearer {world.token}"}
        response = case.call(base_url=world.platform.url, headers=headers, session=session, timeout=20)
        case.validate_response(response, checks=CHECKS)
        if response.headers.get("Content-Type", [""])[0].startswith("application/json"):
            info = str(response.json().get("info"))
            assert "internal error" not in info, (case.as_curl_command(), info)

    try:
        run()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, "nothing fits the schema"


OPERATIONS = [(path, method.upper()) for path, methods in document()["paths"].items() for method in methods]


def test_each_action_has_an_operation_of_its_own() -> None:
    named = {path.removeprefix(f"{GATEWAY_PATH}/") for path, method in OPERATIONS if method == "POST"}
    assert {operation.name for operation in TABLE} <= named


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_an_operation(world: World, deadline: float, path: str, method: str) -> None:
    ends_session = path.removeprefix(f"{GATEWAY_PATH}/") in ENDS_SESSIONS
    if ends_session:
        world.rehearsal.log_in()
    check(world, schema()[path][method], deadline=deadline)
    if ends_session:
        world.rehearsal.log_in()


def test_an_answer_outside_its_schema_is_noticed(world: World, deadline: float) -> None:
    ping = f"{GATEWAY_PATH}/ping"
    changed = json.loads(json.dumps({**document(), "paths": {ping: document()["paths"][ping]}}))
    changed["components"]["schemas"]["ping.answer"]["required"].append("no_such_field")
    operation = schemathesis.openapi.from_dict(changed, config=SchemathesisConfig())[ping]["POST"]
    with pytest.raises(FailureGroup, match="Response violates schema"):
        check(world, operation, deadline=deadline)


def test_the_platform_is_well_afterwards(world: World) -> None:
    assert world.platform.unready_parts() == []
