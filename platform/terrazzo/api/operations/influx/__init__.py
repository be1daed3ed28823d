"""What InfluxDB's clients ask: InfluxQL over objects and terminals, read-only."""
