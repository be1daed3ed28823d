"""What records and messages are and which rules hold in them: pure, shared by the registry and all capabilities."""
