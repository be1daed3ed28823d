"""The flags of objects (online, running, labelled), and their changes as live frames."""
