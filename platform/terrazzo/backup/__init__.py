"""Backups of a platform: made while it runs, checked, and restored."""
