"""Delivery of messages: routing to sessions, encoding, queues, QoS 1 and 2; no I/O."""
