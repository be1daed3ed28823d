"""The composition, a file for each side of the platform; ``terrazzo.serve`` brings them together, in order."""
