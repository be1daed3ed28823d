"""The console: its files, the cookie of its session, and what browsers report of its policy."""
