"""Stored entities behind the paths of the component interfaces (section 2)."""
