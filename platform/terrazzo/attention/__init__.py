"""What needs a person: counts and first entries, made when somebody asks."""
