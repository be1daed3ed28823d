"""The APIs: one table of operations, served over HTTP (and later WebSocket and TCP)."""
