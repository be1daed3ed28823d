"""The actions of the gateway, a file for each capability."""
