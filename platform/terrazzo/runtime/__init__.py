"""Runs the platform: supervised tasks, the order of start and stop, the assembly of its parts."""
