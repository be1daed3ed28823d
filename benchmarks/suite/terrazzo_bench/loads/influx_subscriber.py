"""The middle of the stack that people build: paho takes messages, decodes JSON and writes batches of line protocol.

Run as ``python -m terrazzo_bench.loads.influx_subscriber PORT INFLUXDB_URL``; prints ``ready`` once subscribed.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
import urllib.request
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

BATCH = 5000  # lines a write: what InfluxDB's documentation recommends

Arrived = queue.SimpleQueue[tuple[str, bytes, int]]


def to_line(topic: str, body: bytes, time_ns: int) -> str:
    """A message as line protocol."""
    fields = ",".join(
        f'{point}="{value}"' if isinstance(value, str) else f"{point}={value}"
        for point, value in json.loads(body).items()
    )
    return f"grid,terminal={topic.split('/')[1]} {fields} {time_ns}"


def write_forever(arrived: Arrived, url: str) -> None:
    """Writes what has arrived, in batches."""
    while True:
        lines = [to_line(*arrived.get())]
        while len(lines) < BATCH and not arrived.empty():
            lines.append(to_line(*arrived.get()))
        request = urllib.request.Request(f"{url}/write?db=bench", data="\n".join(lines).encode(), method="POST")
        with urllib.request.urlopen(request) as answer:
            answer.read()


def main(port: int, url: str) -> None:
    """Until it is ended."""
    arrived: Arrived = queue.SimpleQueue()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="writer", clean_session=True)

    def on_message(_client: Any, _data: Any, message: Any) -> None:
        arrived.put((message.topic, message.payload, time.time_ns()))

    client.on_message = on_message
    client.on_subscribe = lambda *_: print("ready", flush=True)
    client.connect("127.0.0.1", port)
    client.subscribe("g/#", qos=1)
    threading.Thread(target=write_forever, args=(arrived, url), name="writer", daemon=True).start()
    client.loop_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
