"""Bridges to remote MQTT brokers, on paho-mqtt.

=========== ==========================================================================
settings    the remote broker, and the topics that cross
queue_index the numbers and sizes of the messages that wait; drops some when it is full
spool       the messages on disk
queue       takes messages from the local broker, puts them on disk, hands them on in order
link        one connection to the remote broker
sender      sends messages over one connection
receiver    receives messages over one connection
bridge      ``MqttBridge``: connects again and again, status, shutdown
=========== ==========================================================================
"""

from terrazzo_adapters.bridge.bridge import MqttBridge, tls_context
from terrazzo_adapters.bridge.settings import BridgeSettings, TopicRule

__all__ = ["BridgeSettings", "MqttBridge", "TopicRule", "tls_context"]
