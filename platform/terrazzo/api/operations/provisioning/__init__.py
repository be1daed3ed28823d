"""How terminals come in: registering them, claim keys, the authorities of their certificates."""
