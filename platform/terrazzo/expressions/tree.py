"""What an expression may consist of, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

X = "x"
"""The name of the point's value."""


class Constant(msgspec.Struct, frozen=True):
    """A number, a text, true or false."""

    value: float | int | str | bool


class Name(msgspec.Struct, frozen=True):
    """A code of the object, or ``x``."""

    code: str


class Sign(msgspec.Struct, frozen=True):
    """``-a`` or ``+a``."""

    operator: str
    operand: Node


class Arithmetic(msgspec.Struct, frozen=True):
    """``+ - * / // % **``."""

    operator: str
    left: Node
    right: Node


class Comparison(msgspec.Struct, frozen=True):
    """``a < b <= c``: each operator with what stands to its right."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


class Logic(msgspec.Struct, frozen=True):
    """``and`` or ``or`` of two or more."""

    operator: str
    operands: tuple[Node, ...]


class Not(msgspec.Struct, frozen=True):
    """``not a``."""

    operand: Node


class Choice(msgspec.Struct, frozen=True):
    """``a if c else b``."""

    condition: Node
    then: Node
    otherwise: Node


class Call(msgspec.Struct, frozen=True):
    """One of the functions."""

    function: str
    arguments: tuple[Node, ...]


Node = Constant | Name | Sign | Arithmetic | Comparison | Logic | Not | Choice | Call


def children(node: Node) -> tuple[Node, ...]:
    """The direct children of a node, from left to right."""
    match node:
        case Sign(_, operand) | Not(operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return left, right
        case Comparison(first, rest):
            return first, *(operand for _, operand in rest)
        case Logic(_, operands) | Call(_, operands):
            return operands
        case Choice(condition, then, otherwise):
            return condition, then, otherwise
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(children(found)))


def chain_of(node: Node) -> tuple[Node, list[Arithmetic]]:
    """What a chain of ``+ - * / // %`` begins with, and its operations from there on.

    ``a + b - c`` is as deep as it is long; whoever follows the chain in a loop goes only as deep as the text is nested.
    """
    operations = []
    while isinstance(node, Arithmetic) and node.operator != "**":
        operations.append(node)
        node = node.left
    return node, operations[::-1]


def with_name(node: Node, before: str, after: str) -> Node:
    """A copy of the tree in which one name is replaced by another."""
    start, operations = chain_of(node)
    copy = _with_name(start, before, after)
    for each in operations:
        copy = Arithmetic(each.operator, copy, with_name(each.right, before, after))
    return copy


def _with_name(node: Node, before: str, after: str) -> Node:

    def change(found: Node) -> Node:
        return with_name(found, before, after)

    match node:
        case Name(code):
            return Name(after) if code == before else node
        case Sign(operator, operand):
            return Sign(operator, change(operand))
        case Not(operand):
            return Not(change(operand))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, change(left), change(right))
        case Comparison(first, rest):
            return Comparison(change(first), tuple((operator, change(operand)) for operator, operand in rest))
        case Logic(operator, operands):
            return Logic(operator, tuple(change(operand) for operand in operands))
        case Choice(condition, then, otherwise):
            return Choice(change(condition), change(then), change(otherwise))
        case Call(function, arguments):
            return Call(function, tuple(change(argument) for argument in arguments))
        case _:
            return node


def names_of(node: Node) -> list[str]:
    """The codes that occur, ``x`` among them, each once, in order."""
    return list(dict.fromkeys(found.code for found in walk(node) if isinstance(found, Name)))
