"""The listeners: one file for each transport (TCP with and without TLS, WebSocket, Unix socket)."""
