"""The composition, a file for each side of the platform; ``terrazzo.runtime.serve`` brings them together, in order."""
