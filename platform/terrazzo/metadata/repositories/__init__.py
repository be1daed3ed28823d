"""One repository for all entities, and what is special about some."""
