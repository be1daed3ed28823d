"""The messenger: e-mail, SMS, app push, official-account messages and webhooks, journaled and sent once."""
