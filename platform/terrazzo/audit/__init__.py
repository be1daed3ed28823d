"""Who changed or commanded what, when and from where."""
