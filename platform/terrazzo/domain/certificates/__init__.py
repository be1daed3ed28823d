"""Login by client certificate: the authorities of companies, and what a certificate says."""
