"""Firmware campaigns: their terminals, waves and ends. Pure."""
