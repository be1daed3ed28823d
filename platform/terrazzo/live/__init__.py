"""Live: what happens is published once and reaches whoever has subscribed, in numbered frames."""
