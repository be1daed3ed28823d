"""The audit log: who changed or commanded what, when and from where."""
