"""How requests arrive: HTTP, WebSocket, TCP, forms and files."""
