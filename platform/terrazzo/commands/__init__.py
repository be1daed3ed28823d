"""Commands to terminals: their payloads, their journal, their delivery."""
