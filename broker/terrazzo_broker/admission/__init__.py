"""Who may come in: sockets and logins that have proved nothing yet, in shares by address, and the pace of CONNECTs."""
