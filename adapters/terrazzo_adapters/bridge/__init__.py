"""Bridges to remote MQTT brokers.

=========== ==========================================================================
settings    the remote broker, and which topics cross
queue_index which messages wait, and which one has to go when there is no room
spool       the messages on disk
queue       from the local broker onto the disk, and on in order
link        one connection to the remote broker
sender      messages out over one connection
receiver    messages in over one connection
bridge      ``MqttBridge``: connecting again and again, status, the end
=========== ==========================================================================
"""

from terrazzo_adapters.bridge.bridge import MqttBridge
from terrazzo_adapters.bridge.settings import BridgeSettings, TopicRule

__all__ = ["BridgeSettings", "MqttBridge", "TopicRule"]
