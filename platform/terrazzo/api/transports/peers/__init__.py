"""Who is at the other end: the address that counts, and the page that a browser asks for."""
