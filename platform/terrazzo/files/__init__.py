"""Uploaded files: what may be uploaded, where it is kept, and how it is served."""
