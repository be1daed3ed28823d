"""Columns: the points of one name in arrays. Charts of every store are computed from them.

========== =====================================================================
points     parses a record's body into names and values
rollup     one name's numbers by UTC hour
strip      such figures of many blocks of records in one piece
name_tally how often each set of names occurs
column     one name's points in arrays, and their form on disk
resample   reduces points to buckets with one value each
extremes   reduces points to the few that a chart must show
========== =====================================================================

numpy is imported when the first chart is asked for, not when the platform starts.
"""
