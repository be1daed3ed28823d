"""Implementations of the ports in ``terrazzo.ports``: time-series stores, bridges, mail servers and HTTP providers."""
