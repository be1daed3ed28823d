"""Every action has an example in docs/gateway.md, and each example works as printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_run import EXAMPLES, GATEWAY_MD, Rehearsal, with_tcp

from terrazzo.api.operations.table import TABLE

PERFORMED_ELSEWHERE = {
    **dict.fromkeys(("change_password", "request_password_reset", "reset_password"), "api/test_api_passwords.py"),
    **dict.fromkeys(
        ("confirm_second_factor", "disable_second_factor", "renew_recovery_codes", "remove_second_factor"),
        "api/test_api_second_factor.py",
    ),
    "get_session": "console/test_console_session.py",
    **dict.fromkeys(("renew_wall_link", "get_wall_link", "end_wall_link"), "api/test_api_wall_links.py"),
    **dict.fromkeys(("get_wall", "get_wall_values", "get_wall_chart"), "api/test_api_wall_links.py"),
    "get_wall_picture": "api/test_api_wall_links.py",
    **dict.fromkeys(("begin_single_sign_on", "finish_single_sign_on"), "api/test_api_single_sign_on.py"),
}
"""Actions that need a mail, an app, a provider, a cookie or a link's key, or end the session: see docs/users.md."""


def test_every_action_has_an_example() -> None:
    missing = {operation.name for operation in TABLE if operation.name not in EXAMPLES}
    assert missing == PERFORMED_ELSEWHERE.keys()
    users = (GATEWAY_MD.parent / "users.md").read_text(encoding="utf-8")
    for name, file in PERFORMED_ELSEWHERE.items():
        assert f'"{name}"' in (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
        assert any(form in users for form in (f"`{name}`", f'"action": "{name}"', f"/apiproxy/api/{name} "))
    for name, (request, answer) in EXAMPLES.items():
        assert request["action"] == name
        assert (answer["resp"], answer["code"]) == (name, 200)


@pytest.mark.usefixtures("each_database")
def test_each_example_works_as_printed(tmp_path: Path) -> None:
    with with_tcp(tmp_path / "data") as platform:
        rehearsal = Rehearsal(platform)
        try:
            for name, (request, answer) in EXAMPLES.items():
                got = rehearsal.perform(request)
                assert got["code"] == 200, (name, got)
                rehearsal.compare(answer, got, name)
        finally:
            rehearsal.close()


def test_a_difference_is_noticed() -> None:
    """The comparison itself: what may differ is the value of a time, a made-up uid or a token, not its form."""
    compare = Rehearsal.__new__(Rehearsal)
    compare._real = {}
    compare.compare({"created": "2026-01-01 00:00:00"}, {"created": "2027-01-01 00:00:00"})
    compare.compare({"uid": "0c0ffee00001"}, {"uid": "aaaaaaaaaaaa"})
    for documented, got in [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, {}),
        ([1], [1, 1]),
        ({"created": "2026-01-01 00:00:00"}, {"created": "2026-01-01T00:00:00+00:00"}),
        ({"uid": "0c0ffee00001"}, {"uid": "bbbbbbbbbbbb"}),
        ({"name": "Pump"}, {"name": "Pumps"}),
    ]:
        with pytest.raises(AssertionError):
            compare.compare(documented, got)
