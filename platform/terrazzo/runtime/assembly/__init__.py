"""Makes and wires the parts, a file for each side of the platform; ``terrazzo.runtime.serve`` calls them in order."""
