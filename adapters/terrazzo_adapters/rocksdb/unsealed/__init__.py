"""Records that are not sealed yet, many at a time.

======= ============================================================
recent  those that came lately, in memory
records their columns and counts, from memory and RocksDB's entries
======= ============================================================
"""
