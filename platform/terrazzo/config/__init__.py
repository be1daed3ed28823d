"""Configuration: TOML, over it the environment; a bad key or value is fatal."""
