"""Bombs: what is small to send and large, deep or costly to take, by those who have logged in."""
