"""The APIs: one table of operations, served over HTTP, WebSocket and TCP."""
