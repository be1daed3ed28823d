"""Who has the event loop, and for how long."""
