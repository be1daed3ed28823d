"""Simulated field terminals that connect over real sockets."""
