"""Columns: the points of one name, apart from all others. What charts are made of, whichever store they come from.

======== =======================================================================
points   a record's body to names and values
column   one name's points in arrays, and their form on disk
resample points to buckets with one value each
extremes points to the few that a chart must show
======== =======================================================================

numpy is loaded when the first chart is asked for, not when the platform starts.
"""
