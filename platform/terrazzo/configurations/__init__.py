"""Configurations of terminals: what is wanted is sent to them, and held against what they report."""
