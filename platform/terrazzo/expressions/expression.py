"""One expression: its text, the names that it uses, and a function, compiled when it is needed first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from terrazzo.expressions.functions import Value
from terrazzo.expressions.parser import parse
from terrazzo.expressions.source import NAMESPACE, expression_source, is_settled
from terrazzo.expressions.tokens import ExpressionError
from terrazzo.expressions.tree import Node, names_of
from terrazzo.reasons import say

ExpressionValues = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Expression:
    """``evaluate`` takes about half a microsecond for a simple one, the first time up to two milliseconds."""

    text: str
    tree: Node = field(compare=False, repr=False)  # as deep as the text is long
    names: tuple[str, ...]
    _compiled: list[Callable[[ExpressionValues], Value]] = field(default_factory=list, compare=False, repr=False)

    def evaluate(self, values: ExpressionValues) -> Value:
        """The value for names and their values; never raises and never runs long.

        A name that is absent or null makes it null, and so do texts in arithmetic, a division by zero, and a result
        that no finite number holds.
        """
        if not self._compiled:
            self._compiled.append(_compile(self.tree))
        return self._compiled[0](values)


def parse_expression(text: str, *, names: Collection[str] | None = None) -> Expression:
    """Reads an expression.

    Args:
        names: those that may occur; None: any.

    Raises:
        ExpressionError: what is wrong and at which character, or an unknown name.
    """
    return expression_of(text, parse(text), names=names)


def expression_of(text: str, tree: Node, *, names: Collection[str] | None = None) -> Expression:
    """An expression from a tree; raises as ``parse_expression``."""
    used = tuple(names_of(tree))
    for name in used:
        if names is not None and name not in names:
            raise ExpressionError(say("no_code", code=name[:64]))
    return Expression(text, tree, used)


def _compile(tree: Node) -> Callable[[ExpressionValues], Value]:
    result = expression_source(tree, lambda code: f"v[{code!r}]")
    if not is_settled(tree):
        result = f"settle({result})"
    source = f"def evaluate(v):\n try:\n  return {result}\n except FAULTS:\n  return None\n"
    namespace = dict(NAMESPACE)
    exec(compile(source, "<expression>", "exec"), namespace)  # made of our own tree  # nosec B102
    return namespace["evaluate"]  # type: ignore[no-any-return]
