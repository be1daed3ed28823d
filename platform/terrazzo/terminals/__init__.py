"""Terminals as the hot path sees them: who they are, what they may do, who is connected."""
