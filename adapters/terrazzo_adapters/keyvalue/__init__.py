"""An embedded key-value database (RocksDB), and what everybody who keeps something in one has in common.

========= =====================================================================
database  one open database: options, errors, closing and reopening
walk      entries in the order of their keys, up and down
notes     values by name, beside whatever else the database holds
========= =====================================================================
"""
