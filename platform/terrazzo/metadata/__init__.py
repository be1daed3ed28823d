"""The stored entities (terminals, objects, users, rules, ...): definitions, repositories and the registry in memory."""
