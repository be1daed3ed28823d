"""Fronts: processes that speak MQTT to terminals, and the leader's end of what they take."""
