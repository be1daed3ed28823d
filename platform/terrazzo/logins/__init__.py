"""What the logins of users and of terminals share: how guessing is slowed down, and whose turn a costly check is."""
