"""``kill -9`` while messages are on their way: none is lost, none is sent twice, and what nobody can know is said."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from running import Platform, wait_for
from support import free_port

ROUNDS = 2


class Provider:
    """An HTTP provider in threads; holds its answers back while it is told to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.texts.append(body["text"])
                outer.answers.wait()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


def test_kill_9_between_journal_and_answer(tmp_path: Path) -> None:
    provider, config = Provider(), tmp_path / "terrazzo.toml"
    away = f"http://127.0.0.1:{free_port()}/"
    body = '{"text": "{msgdata}"}'
    config.write_text(
        'messenger.allow_private = ["127.0.0.0/8"]\n'
        f'[[messenger.project]]\nid = 1\nname = "up"\nsms = {{ url = "{provider.url}", body = \'{body}\' }}\n'
        f'[[messenger.project]]\nid = 2\nname = "away"\nsms = {{ url = "{away}", body = \'{body}\' }}\n'
    )
    platform = Platform(tmp_path / "data", arguments=("--config", str(config))).login()
    try:
        for number in range(ROUNDS):
            send(platform, 2, f"waits {number}")
            provider.answers.clear()
            held = threading.Thread(target=send_until_killed, args=[platform, f"held {number}"])
            held.start()
            wait_for(lambda n=number: f"held {n}" in provider.texts, "the provider has the request")
            platform.kill()
            held.join()
            provider.answers.set()
            platform = platform.again().login()
        listed = {each["content"]["msgdata"]: each for each in messages(platform)}
        for number in range(ROUNDS):
            assert listed[f"held {number}"]["state"] == "unknown"
            assert "it may have arrived" in listed[f"held {number}"]["reason"]
            assert listed[f"waits {number}"]["state"] == "queued"
        assert sorted(provider.texts) == [f"held {number}" for number in range(ROUNDS)], "nothing twice"
    finally:
        platform.stop()
        provider.server.shutdown()
        provider.server.server_close()


def send(platform: Platform, project_id: int, text: str) -> dict[str, Any]:
    import requests

    data = {"project_id": project_id, "sms_group": {"msgdata": text}, "send_user_group": ["+1"]}
    headers = {"Authorization": f"Bearer {platform.token}"}
    answer = requests.post(f"{platform.url}/api/send/send-sms", json=data, headers=headers, timeout=30)
    found: dict[str, Any] = answer.json()
    return found


def send_until_killed(platform: Platform, text: str) -> None:
    import requests

    try:
        send(platform, 1, text)
    except requests.ConnectionError:
        return  # as the test wants it
    raise AssertionError("the platform was to be killed")


def messages(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = platform.call("get_message_list", page_size=100)["data"]
    return found
