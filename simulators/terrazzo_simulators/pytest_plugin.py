"""The pytest fixtures of the simulators."""
