"""InfluxQL, read-only: text to statements, and statements to series over columns of points.

============ ==================================================================================
tokens       text to tokens
syntax       statements and expressions as values
expressions  tokens to expressions
statements   tokens to statements
moments      lengths of time and times as the language writes them
patterns     regular expressions, matched in linear time
conditions   what of WHERE is a range of time, and what of it holds for rows
vectors      values of one name in arrays, and rows of them
windows      GROUP BY time
aggregates   windows of points to one value, or a few
digests      what windows have in few figures, where functions need no more
transforms   series of values to others: differences, derivatives, fill
planning     what a SELECT reads, and whether it makes sense
select       a SELECT over rows
answers      series as InfluxDB's JSON and CSV
============ ==================================================================================

Pure: nothing is read or awaited here. numpy is imported with the first question, not when the platform starts.
"""
