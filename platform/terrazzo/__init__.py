"""The Terrazzo device platform."""
