"""From what terminals report to the variables, events and labels of objects (``docs/mapping.md``).

=========== ==========================================================================================
tokens      the text of an expression in pieces
tree        what an expression may consist of, and nothing else
parser      pieces to a tree, bounded in size and depth
source      a tree as Python source: the only thing that is ever compiled
functions   what compiled expressions call
expression  one expression with its text, compiled
row         one row of a mapping table, its three shapes and six kinds
table       all rows of a mapping: references checked, order of computation
plan        the rows that one terminal feeds, as one Python function
window      rolling statistics in bounded memory
state       what is remembered of an object, and how it is kept
labels      the open and closed labels of an object, a state machine
effects     events and labels as data, on their way to the database
catalogue   which mapping, terminals and retainers an object has; plans by terminal
engine      the shaping step of the ingest
ledger      effects into the database, each exactly once
outbox      the effects that the database hasn't taken yet, bounded
trial       a mapping tried on sample payloads, nothing stored
=========== ==========================================================================================
"""
