"""Debian's RabbitMQ as a process of its own, with MQTT, that asks a platform over HTTP who may log in."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from running import ServerProcess, answers_tcp
from support import free_port, require_program

_DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "beside-a-broker.md"


def documented(language: str, heading: str) -> str:
    """The first block of a language under a heading of docs/beside-a-broker.md."""
    section = _DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    block = section.partition(f"```{language}\n")[2].partition("```")[0]
    assert block, f"no {language} under {heading}"
    return block


class RabbitMq(ServerProcess):
    """RabbitMQ with a node of its own. ``port`` is that of MQTT; it takes about 13 seconds to start.

    Args:
        http: the port of the platform that it asks. The rest of its configuration is that of the documents.
    """

    def __init__(self, folder: Path, *, http: int) -> None:
        require_program("rabbitmq-server")
        program = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # the one in the path changes to another user first
        folder.mkdir(parents=True)
        self.port, names = free_port(), free_port()
        config, plugins, self._pid_file = folder / "rabbitmq.conf", folder / "plugins", folder / "pid"
        text = documented("ini", "RabbitMQ").replace(":1884", f":{self.port}").replace(":31507", f":{http}")
        config.write_text(f"listeners.tcp.local = 127.0.0.1:{free_port()}\n{text}")
        plugins.write_text("[rabbitmq_mqtt,rabbitmq_auth_backend_http].")
        environment = {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"terrazzo-{self.port}@localhost",
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_PID_FILE": str(self._pid_file),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        register = [require_program("epmd"), "-address", "127.0.0.1", "-port", str(names)]
        self._names = ServerProcess(register, log=folder / "names.log")  # else it starts one that nobody ends
        self._names.wait_ready(lambda: answers_tcp(names))
        super().__init__([program], log=folder / "output.log", env=environment)
        self.wait_ready(lambda: answers_tcp(self.port), timeout_s=120)

    def kill(self) -> None:
        """Ends the server, which is no child of the script that started it, and its register of names."""
        with suppress(FileNotFoundError, ProcessLookupError, ValueError):
            os.kill(int(self._pid_file.read_text()), signal.SIGKILL)
        super().kill()
        self._names.kill()

    def stop(self, *, timeout_s: float = 15) -> int:
        """As ``kill``: a tidy end takes seconds, and nothing is kept."""
        self.kill()
        return 0
