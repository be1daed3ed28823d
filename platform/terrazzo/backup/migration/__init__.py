"""From one kind of database or store to another: everything is copied, compared, and only then to be started."""
