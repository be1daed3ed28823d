"""Many records at once: imports that happen as a whole or not at all, and exports that can be imported again."""
