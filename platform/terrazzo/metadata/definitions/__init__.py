"""The entities of the registry: names, columns, rules."""
