"""Values shared by the registry and all capabilities (records, commands, payloads), and the pure rules for them."""
