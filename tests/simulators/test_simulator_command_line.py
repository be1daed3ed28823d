"""``python -m terrazzo_simulators run`` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from mosquitto_peer import Mosquitto, Observer

from loaded_process import LoadedProcess
from support import free_port


class Run(NamedTuple):
    """A run under way, and the files that it writes to."""

    process: LoadedProcess
    output: IO[bytes]
    errors: IO[bytes]


def start(*arguments: object) -> Run:
    output, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - `finish` closes them
    program = ["-m", "terrazzo_simulators", "run", *map(str, arguments)]
    return Run(LoadedProcess(program, output, os.environ, errors=errors), output, errors)


def finish(run: Run, timeout_s: float = 30) -> tuple[int, str, str]:
    try:
        status = run.process.wait(timeout_s)
    finally:
        run.process.kill()
    return status, _all_of(run.output), _all_of(run.errors)


def _all_of(file: IO[bytes]) -> str:
    with file:
        file.seek(0)
        return file.read().decode()


def test_it_starts_as_users_start_it(mosquitto: Mosquitto) -> None:
    options = ("--port", str(mosquitto.port), "--count", "1", "--interval", "0.1", "--duration", "0.5")
    command = [sys.executable, "-m", "terrazzo_simulators", "run", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("total ")


def test_it_runs_for_its_duration_and_sums_up(mosquitto: Mosquitto) -> None:
    status, output, errors = finish(
        start("--port", mosquitto.port, "--count", 3, "--interval", 0.2, "--duration", 2, "--summary", 0.5, "--json")
    )
    assert (status, errors) == (0, "")
    summaries = [json.loads(line) for line in output.splitlines()]
    assert len(summaries) >= 3
    assert [summary["final"] for summary in summaries] == [False] * (len(summaries) - 1) + [True]
    assert summaries[-1]["terminals"] == summaries[-1]["connects"] == 3
    assert summaries[-1]["acknowledged"] == summaries[-1]["published"] > 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_with_a_summary(
    mosquitto: Mosquitto, watching: Observer, number: signal.Signals
) -> None:
    run = start("--port", mosquitto.port, "--count", 2, "--interval", 0.1)
    watching.wait_for(lambda messages: sum(message.topic.endswith("/r") for message in messages) > 4)
    run.process.send_signal(number)
    status, output, errors = finish(run)
    assert (status, errors) == (0, "")
    assert output.splitlines()[-1].startswith("total ")
    assert "disconnects" not in output
    # In order: the broker had the DISCONNECT of both, and lost no connection.
    log = (mosquitto.folder / "mosquitto.log").read_text()
    assert "Received DISCONNECT from sim-00001" in log
    assert "Received DISCONNECT from sim-00002" in log


def test_a_file_of_terminals(mosquitto: Mosquitto, watching: Observer, tmp_path: Path) -> None:
    path = tmp_path / "terminals.json"
    path.write_text(
        json.dumps(
            [
                {"uid": "pump", "username": "sim-00001", "pin": "pin-00001", "type": "Adapter-X", "protocol": "3.1.1"},
                {"uid": "hall", "username": "sim-00002", "pin": "pin-00002", "format": "msgpack"},
            ]
        )
    )
    run = start("--port", mosquitto.port, "--terminals", path, "--interval", 0.1)
    watching.wait_for(lambda messages: {"g/pump/r", "g/hall/r"} <= {message.topic for message in messages})
    run.process.send_signal(signal.SIGTERM)
    assert finish(run)[0] == 0


def test_a_fleet_that_never_connects_says_why_and_fails(mosquitto: Mosquitto) -> None:
    status, _, errors = finish(start("--port", mosquitto.port, "--pin", "wrong", "--count", 1, "--duration", 1))
    assert status == 1
    assert "login refused: 0x87" in errors
    status, _, errors = finish(start("--port", free_port(), "--count", 1, "--duration", 1))
    assert status == 1
    assert "refused" in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--count", "0"], "--count: must be from 1 to 5000"),
        (["--count", "many"], "--count: must be a whole number"),
        (["--host", ""], "--host: must not be empty"),
        (["--host", "a..b"], "--host: must be a host name"),
        (["--port", "70000"], "--port: must be from 1 to 65535"),
        (["--interval", "nan"], "--interval: must be from"),
        (["--mode", "none"], "--mode: invalid choice: 'none'"),
        (["--mode", "scram-sha-1", "--protocol", "3.1.1"], "protocol must be 5.0"),
        (["--pin", "{n:020d}"], "pin must have 1 to 16"),
        (["--pin", "{x}"], "pin: pattern"),
        (["--uid", "a/{n}"], "uid must not contain"),
        (["--clock", "today"], "--clock: must be a time"),
        (["--loss", "0.6", "--malformed", "0.6"], "--loss, --disconnect and --malformed"),
        (["--terminals", "/nowhere.json"], "/nowhere.json: cannot be read"),
        (["--rsa-publickey", "/nowhere.pem"], "--rsa-publickey"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_a_bad_option_is_named(arguments: list[str], said: str) -> None:
    status, output, errors = finish(start(*arguments))
    assert (status, output) == (2, "")
    assert said in errors
    assert "Traceback" not in errors


def test_a_key_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----")
    status, _, errors = finish(start("--encrypt", "--rsa-publickey", path, "--port", free_port(), "--duration", 1))
    assert status == 2
    assert "rsa_publickey" in errors
    assert "Traceback" not in errors
