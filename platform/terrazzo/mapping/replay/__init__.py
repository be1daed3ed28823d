"""Replay: an object's mosaic, events and labels of a past range, made again from what its terminals reported."""
