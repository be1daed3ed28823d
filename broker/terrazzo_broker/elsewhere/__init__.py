"""Brokers with clients of the same owners, which hear each other."""
