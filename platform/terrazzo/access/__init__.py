"""Who the users are and what they may do: passwords, tokens, roles, throttling."""
