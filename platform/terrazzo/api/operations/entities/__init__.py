"""The actions of stored entities, made from their definitions."""
