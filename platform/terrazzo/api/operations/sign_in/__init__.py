"""What users log in with, beside name and password."""
