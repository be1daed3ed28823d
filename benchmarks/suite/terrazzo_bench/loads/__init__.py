"""Load generators, each in a process of its own: precoded packets, so that the generator is not the limit."""
