"""What of a command's payload is shown to those who may not send it."""

from __future__ import annotations

from terrazzo.domain.command_payload import without_download_secrets


def test_password_and_signature_of_a_download_are_masked() -> None:
    url = "http://h/firmware/1/f/n?terminal=t&expires=1&signature=abcdef"
    payload = {"Act": "AXUpgrade", "Unit": "LUA", "URL": url, "User": "up", "Pwd": "hush"}
    assert without_download_secrets(payload) == {
        "Act": "AXUpgrade",
        "Unit": "LUA",
        "URL": "http://h/firmware/1/f/n?terminal=t&expires=1&signature=******",
        "User": "up",
        "Pwd": "******",
    }
    assert without_download_secrets({"Act": "Control", "Pwd": 1}) == {"Act": "Control", "Pwd": 1}
    assert without_download_secrets(None) is None
