"""Terminals at the broker: their login, their permissions, their presence."""
