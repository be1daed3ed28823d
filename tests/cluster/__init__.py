"""Several nodes under load and faults. A package, as a benchmark has the same name, and may be on the path, too."""
