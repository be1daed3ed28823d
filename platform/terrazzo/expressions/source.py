"""A tree as Python source, the only thing that is ever compiled.

A missing operand, a text where a number is due and a division by zero raise, and the whole expression is null then;
what ``and``, ``or`` and ``if`` skip does not count. Operands of arithmetic carry a unary plus, which texts and null
refuse, so that nothing is ever repeated, formatted or concatenated; where the operator refuses them itself they don't.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from terrazzo.expressions.functions import CALLED, FAULTS, ORDERINGS, missing, power, settle
from terrazzo.expressions.tree import (
    Arithmetic,
    Call,
    Choice,
    Comparison,
    Constant,
    Logic,
    Name,
    Node,
    Not,
    Sign,
    chain_of,
)

Places = Callable[[str], str]
"""Where a name's value stands: a code to Python source."""

_ORDERED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

NAMESPACE: dict[str, Any] = {
    **{name: ORDERINGS[each] for each, name in _ORDERED.items()},
    "FAULTS": FAULTS,
    "missing": missing,
    "power": power,
    "round": round,
    "settle": settle,
    "str": str,
    **{f"fn_{name}": function for name, function in CALLED.items()},
    "__builtins__": {},
}
"""What the source may refer to."""

_ATOM, _SIGN, _PRODUCT, _SUM, _COMPARISON, _NOT, _AND, _OR, _CHOICE = range(9, 0, -1)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}
_ANY_KIND = frozenset({"min", "max", "same", "plain"})  # functions that take texts as well
_FLOATS = frozenset({"sqrt", "log", "exp"})
_NUMBERS_ONLY = frozenset({"-", "/", "//"})  # operators that refuse texts and null by themselves
_DIGITS = [Constant(digits) for digits in range(1, 16)]


def expression_source(node: Node, places: Places) -> str:
    """Source that evaluates to the value, or raises one of ``FAULTS``."""
    return places(node.code) if isinstance(node, Name) else _Writer(places).value(node)[0]


def is_number(node: Node) -> bool:
    """Whether the result can be nothing but a number."""
    return isinstance(node, Arithmetic | Sign) or (isinstance(node, Call) and node.function not in _ANY_KIND)


def is_float(node: Node) -> bool:
    """Whether the result can be nothing but a float."""
    start, operations = chain_of(node)
    if any(each.operator == "/" or is_float(each.right) for each in operations):
        return True
    match start:
        case Constant(value):
            return isinstance(value, float)
        case Sign(_, operand):
            return is_float(operand)
        case Call(function, _):
            return function in _FLOATS
    return False


def may_be_text(node: Node) -> bool:
    """Whether the result may be a text."""
    if isinstance(node, Constant):
        return isinstance(node.value, str)
    return isinstance(node, Name | Choice | Logic) or (isinstance(node, Call) and node.function in _ANY_KIND - {"same"})


def is_settled(node: Node) -> bool:
    """Whether the result needs no ``settle``: a name, a constant, or a truth."""
    return isinstance(node, Name | Constant | Comparison | Not)


def _ordered(left: str, right: str, operator: str) -> str:
    return f"{_ORDERED[operator]}({left}, {right})"


class _Writer:
    """Each method returns source and its level of precedence; higher binds tighter."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def value(self, node: Node) -> tuple[str, int]:
        match node:
            case Constant(value):
                return repr(value), _ATOM if not isinstance(value, int | float) or value >= 0 else _SIGN
            case Name(code):
                place = self._places(code)
                return f"({place} if {place} is not None else missing())", _ATOM
            case Sign(operator, operand):
                return f"{operator}{self._number(operand, _SIGN)}", _SIGN
            case Arithmetic("**", left, right):
                return f"power({self._number(left, _SUM)}, {self._number(right, _SUM)})", _ATOM
            case Arithmetic():
                return self._chain(*chain_of(node))
            case Comparison():
                return self._comparison(node)
            case Logic(operator, operands):
                level = _AND if operator == "and" else _OR
                return f" {operator} ".join(self._at(operand, level + 1) for operand in operands), level
            case Not(operand):
                return f"not {self._at(operand, _NOT)}", _NOT
            case Choice(condition, then, otherwise):
                parts = self._at(then, _OR), self._at(condition, _OR), self._at(otherwise, _CHOICE)
                return "{} if {} else {}".format(*parts), _CHOICE
            case Call(function, arguments):
                return self._call(function, arguments), _ATOM

    def _at(self, node: Node, level: int) -> str:
        """The source of a node, in parentheses where its operator binds less tightly than ``level``."""
        text, own = self.value(node)
        return text if own >= level else f"({text})"

    def _at_place(self, node: Node, level: int) -> str:
        """The source of an operand whose operator fails on texts and null by itself."""
        return self._places(node.code) if isinstance(node, Name) else self._number(node, level)

    def _number(self, node: Node, level: int) -> str:
        """The source of an operand of arithmetic, made to fail on texts and null."""
        if isinstance(node, Name):
            return f"+{self._places(node.code)}"
        if isinstance(node, Choice | Logic) or (isinstance(node, Call) and node.function in _ANY_KIND):
            return f"+{self._at(node, _SIGN)}"
        return self._at(node, level)

    def _chain(self, start: Node, operations: list[Arithmetic]) -> tuple[str, int]:
        """A chain from its left end: what there is so far is the left operand of the next operation."""
        opened, pieces, own, has_float = 0, list[str](), _ATOM, is_float(start)
        for each in operations:
            level, of_float = _LEVELS[each.operator], is_float(each.right)
            is_checked = each.operator in _NUMBERS_ONLY or (each.operator == "*" and (has_float or of_float))
            operand = self._at_place if is_checked else self._number  # who refuses what is no number
            if each is operations[0]:
                pieces.append(operand(start, level))
            elif own < level:
                opened += 1
                pieces.append(")")
            pieces.append(f" {each.operator} {operand(each.right, level + 1)}")
            own, has_float = level, has_float or of_float or each.operator == "/"
        return "(" * opened + "".join(pieces), own

    def _comparison(self, node: Comparison) -> tuple[str, int]:
        operators = [operator for operator, _ in node.rest]
        operands = [node.first, *(operand for _, operand in node.rest)]
        around = zip([None, *operators], [*operators, None], strict=True)
        texts = [self._compared(operand, both) for operand, both in zip(operands, around, strict=True)]
        of_texts = [may_be_text(left) and may_be_text(right) for left, right in pairwise(operands)]
        if not any(operator in _ORDERED and both for operator, both in zip(operators, of_texts, strict=True)):
            pieces = [texts[0], *(f"{operator} {text}" for operator, text in zip(operators, texts[1:], strict=True))]
            return " ".join(pieces), _COMPARISON
        if len(operators) == 1 and isinstance(node.first, Name) and isinstance(operands[1], Name | Constant):
            plain = f"{texts[0]} {operators[0]} {texts[1]}"  # in a tenth of the time, as it mostly is
            return (
                f"({plain} if {texts[0]}.__class__ is not str else {_ordered(texts[0], texts[1], operators[0])})",
                _ATOM,
            )
        return self._steps(operators, texts, of_texts), _AND

    def _steps(self, operators: Sequence[str], texts: Sequence[str], of_texts: Sequence[bool]) -> str:
        """Comparisons one after the other, each operand computed once."""
        found, left = list[str](), texts[0]
        for place, operator in enumerate(operators):
            right = texts[place + 1] if place == len(operators) - 1 else f"(m := {texts[place + 1]})"
            is_ordered = operator in _ORDERED and of_texts[place]
            found.append(_ordered(left, right, operator) if is_ordered else f"{left} {operator} {right}")
            left = "m"
        return " and ".join(found)

    def _compared(self, node: Node, around: tuple[str | None, str | None]) -> str:
        """An ordering refuses null by itself; an equality does not."""
        if isinstance(node, Name) and any(operator in _ORDERED for operator in around):
            return self._places(node.code)
        return self._at(node, _COMPARISON + 1)

    def _call(self, function: str, arguments: tuple[Node, ...]) -> str:
        if function == "round" and len(arguments) == 2 and arguments[1] in _DIGITS:
            return f"round({self._number(arguments[0], _CHOICE)}, {arguments[1].value})"  # needs no check of its own
        if function in _ANY_KIND:
            texts = [self._raw(argument) for argument in arguments]
        else:
            texts = [self._number(argument, _CHOICE) for argument in arguments]
        return f"fn_{function}({', '.join(texts)})"

    def _raw(self, node: Node) -> str:
        """An argument of a function that refuses null itself."""
        return self._places(node.code) if isinstance(node, Name) else self._at(node, _CHOICE)
