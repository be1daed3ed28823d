"""Columns: the points of one name in arrays. Charts of every store are computed from them.

========== =====================================================================
points     parses a record's body into names and values
bodies     the bodies of many records as one piece of memory
flat_maps  finds the values of some names in many bodies at once
decoded    the columns of some names, from many bodies
rollup     one name's numbers by UTC hour
strip      such figures of many blocks of records in one piece
name_tally how often each set of names occurs
column     one name's points in arrays, and their form on disk
resample   reduces points to buckets with one value each
extremes   reduces points to the few that a chart must show
========== =====================================================================

numpy is imported when the first chart is asked for, not when the platform starts.
"""
