"""The repositories: ``EntityRepository`` for any entity, and subclasses for entities with rules of their own."""
