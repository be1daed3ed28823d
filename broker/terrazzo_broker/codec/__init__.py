"""Bytes to packets and packets to bytes, for MQTT 3.1, 3.1.1 and 5.0; no I/O, no state of a connection."""
