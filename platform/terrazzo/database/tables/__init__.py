"""Tables that are no entities."""
