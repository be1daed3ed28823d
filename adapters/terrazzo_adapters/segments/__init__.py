"""Segments: some thousand records of one series, packed in columns. ``docs/format/segment.md`` has the bytes.

=============== =====================================================================
packing         how much work a segment is worth; bytes in frames
numeric         integers and floats: decimals as scaled integers, then pcodec
texts           texts by a dictionary
values          one name's values, of any kind
summary         one name's points in few numbers
rollups         one name's numbers by UTC hour
columns         one name's column: summary and values
shapes          which names a record carries, in which order
times           times and arrival numbers
chunks          bodies as they are, some at a time
rendering       bodies from pieces and what stands between them
mosaic          bodies that follow from the values of their names
tokens          numbers in texts
numerals        numbers as they were written
words           short texts between pieces
templates       texts alike but for numbers and short texts
template_names  which names the records of a template carry
head            what stands at the front: counts, names, checksums of the other parts
parts           reads the parts
kept            reads bodies that are kept as they are
named_records   reads records with a column for each name
payload_records reads records that are texts
segment         reads a segment, as little of it as is asked for
encoding        makes a segment of records
=============== =====================================================================

A part is decoded when it is needed, after its checksum was compared. Nothing here does any I/O.
"""

from terrazzo_adapters.segments.encoding import MOST_BYTES, encode
from terrazzo_adapters.segments.head import MOST_RECORDS
from terrazzo_adapters.segments.packing import Packing
from terrazzo_adapters.segments.parts import SegmentDamaged
from terrazzo_adapters.segments.segment import Segment
from terrazzo_adapters.segments.summary import Summary

__all__ = ["MOST_BYTES", "MOST_RECORDS", "Packing", "Segment", "SegmentDamaged", "Summary", "encode"]
