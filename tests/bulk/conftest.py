"""A served platform for the tests of a file, and users of each role and of another company."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from running import PASSWORD, Platform
from terrazzo.client import Client


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("bulk") / "data") as running:
        running.login()
        other = running.call("create_company", name="Other Works")
        for name, role, company in (
            ("chief", "admin", 1),
            ("worker", "operator", 1),
            ("reader", "viewer", 1),
            ("stranger", "admin", other["id"]),
        ):
            owner = {} if company == 1 else {"permission_company_id": str(company)}
            running.call("create_user", username=name, password=PASSWORD, role=role, **owner)
        yield running


@pytest.fixture(scope="module")
def chief(platform: Platform) -> Iterator[Client]:
    with Client(platform.url, username="chief", password=PASSWORD) as client:
        yield client


@pytest.fixture(scope="module")
def stranger(platform: Platform) -> Iterator[Client]:
    with Client(platform.url, username="stranger", password=PASSWORD) as client:
        yield client


@pytest.fixture(scope="module")
def config_uid(chief: Client) -> str:
    fields = {"name": "Standard", "created_by": 1, "last_modified_by": 1, "is_available": 1}
    return str(chief.call("create_terminal_config", **fields)["uid"])
