"""An embedded key-value database (RocksDB), shared by the stores and spools here.

========= =====================================================================
database  one open database: options, errors, closing and reopening
walk      entries in the order of their keys, ascending and descending
notes     values by name, beside whatever else the database holds
========= =====================================================================
"""
