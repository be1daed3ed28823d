"""Figures by one command: benchmarks, peers beside them in the same run, and what differs from an earlier one."""
