"""Users and access rights from files in Mosquitto's formats, for the broker alone; who may open its own files."""
