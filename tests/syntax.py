"""Syntax trees of sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The tree and all statements in it, however deep, without the expressions in them: nine in ten of the nodes."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes += getattr(node, name, ())
