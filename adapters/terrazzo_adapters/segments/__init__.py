"""Segments: some thousand records of one series, packed in columns. ``docs/format/segment.md`` has the bytes.

========= ==========================================================================================
packing   how much work a segment is worth; bytes in zstd frames
numbers   integers and floats: decimals as scaled integers, then pcodec
texts     texts by a dictionary
values    one name's values, of any kind
shapes    which names a record carries, in which order
chunks    bodies as they are, some at a time
head      what stands at the front: counts, names, checksums of the other parts
summary   one name's points in few numbers
mosaic    bodies that follow from the values of their names
encoding  makes a segment of records
segment   reads one, as little of it as is asked for
========= ==========================================================================================

A part is decoded when it is needed, after its checksum was compared. Nothing here does any I/O.
"""

from terrazzo_adapters.segments.encoding import MOST_BYTES, encode
from terrazzo_adapters.segments.head import MOST_RECORDS
from terrazzo_adapters.segments.packing import Packing
from terrazzo_adapters.segments.segment import Segment, SegmentDamaged
from terrazzo_adapters.segments.summary import Summary

__all__ = ["MOST_BYTES", "MOST_RECORDS", "Packing", "Segment", "SegmentDamaged", "Summary", "encode"]
