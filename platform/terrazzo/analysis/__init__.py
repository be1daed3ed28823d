"""Statistics, calculations and balances of objects' variables, per hour, day, month and year."""
