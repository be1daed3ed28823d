"""Who gets a message, in which form, and what of it they have acknowledged; no I/O."""
