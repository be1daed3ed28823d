"""The embedded broker as the platform sees it: its hooks, the message bus over it, its side of bridges."""
