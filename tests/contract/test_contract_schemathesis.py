"""Whatever fits the OpenAPI document, and whatever doesn't: no 5xx, no answer outside its schema, no internal error."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests
import schemathesis
from contract_world import World, filled_platform
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup

from length import rounds
from terrazzo.api.openapi.document import GATEWAY_PATH, build_document
from terrazzo.api.operations.table import TABLE

LEFT_OUT = {
    "ignored_auth": "who has no good token is answered with HTTP status 200, and 10402 in the envelope",
    "missing_required_header": "the same",
    "negative_data_rejection": "so is who sends what doesn't fit, with 10401",
}
"""Checks that would refuse what the contract asks for; ``docs/gateway.md`` says so. All others of schemathesis run."""
load_all_checks()
RUN = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]
DOCUMENT = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")
REQUESTS = int(os.environ.get("TERRAZZO_SCHEMATHESIS_REQUESTS", rounds(3, 20)))  # of each kind to each operation
BUDGET_S = 5.0 * REQUESTS  # of all; whatever comes after it sends one request of each kind
MAY_REFUSE = {
    "/influx/query": "a statement is a text in a language of its own, which a schema can't describe",
    "/influx/write": "it is there to be refused: terminals write over MQTT",
}
"""Addresses that answer with an error of HTTP what fits the document: all checks but ``positive_data_acceptance``."""
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
    accepts = "positive_data_acceptance"
    checks = [each for each in RUN if operation.path not in MAY_REFUSE or each.__name__ != accepts]
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
        case.validate_response(response, checks=checks)
        if response.headers.get("Content-Type", [""])[0].startswith("application/json"):
            info = str(response.json().get("info"))
            assert "internal error" not in info, (case.as_curl_command(), info)

    try:
        run()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, "nothing fits the schema"


OPERATIONS = [(path, method.upper()) for path, methods in document()["paths"].items() for method in methods]


def test_all_checks_run_but_those_that_are_left_out() -> None:
    names = set(CHECKS.get_all_names())
    assert names >= LEFT_OUT.keys(), "schemathesis has no such check any more"
    assert names == LEFT_OUT.keys() | {check.__name__ for check in RUN}
    command = DOCUMENT.partition("schemathesis run ")[2].partition("```")[0]
    assert f"--exclude-checks {','.join(LEFT_OUT)}" in command
    excluded = "|".join(["logout", *(path.removeprefix("/") for path in MAY_REFUSE)])
    assert f"--exclude-path-regex '/({excluded})$'" in command


def test_a_body_is_required_where_a_field_is() -> None:
    for path, methods in document()["paths"].items():
        if path.startswith(f"{GATEWAY_PATH}/"):
            body = methods["post"]["requestBody"]
            fields = schema_of(body["content"]["application/json"]["schema"])
            assert body["required"] == bool(fields["required"]), path


def schema_of(named: dict[str, Any]) -> dict[str, Any]:
    return document()["components"]["schemas"][named["$ref"].rpartition("/")[2]]


def test_what_needs_no_field_needs_no_body(world: World) -> None:
    headers = {"Authorization": f"Bearer {world.token}"}
    for action in ("ping", "get_session", "get_terminal_list"):
        url = f"{world.platform.url}{GATEWAY_PATH}/{action}"
        assert not document()["paths"][f"{GATEWAY_PATH}/{action}"]["post"]["requestBody"]["required"]
        assert requests.post(url, headers=headers, timeout=20).json()["code"] == 200, action


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
