"""Simulated field terminals over real sockets."""
