"""What is shown of objects besides their records: flags, and their changes as live frames."""
