"""Firmware campaigns: ``AXUpgrade`` in waves, until the terminals report the target version."""
