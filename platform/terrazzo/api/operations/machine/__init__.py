"""The platform itself, for who runs it."""
