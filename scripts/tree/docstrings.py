"""Docstrings: where one must stand, and that a function's begins with a verb in the imperative."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from scripts.tree.sources import Finding, Function, Source, docstring_of, python_in

DOCUMENTED = ("engines", "runs", "clients")


def _set_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First words that are no verb. What is a verb too (Time, Rank, Process) is not among them.
OPENERS = _set_of("""
    the a an this that these those its it their there they
    what whether how where which who whose why when while until if
    of in on at by to from for with without within over between through after before as up out off than
    once only also always not no none all any both each every everything many more most much several some
    one two three four first last whole equal absolute final fair scalable made kept written
    accounting data energy fabric gpu grandchildren host kind leaf login manifest matrix memory names node numbers
    rack storage text words loss server-side unix enroot kueue podman slurm spectrum
""")
# Verbs whose imperative has the ending of another form.
VERBS = _set_of("alias bias focus embed exceed feed need proceed seed shed speed bring ring")
OTHER_FORMS = re.compile(r"(?<!s)s$|ed$|ing$")

Scope = ast.Module | ast.ClassDef


def missing_docstrings(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find public functions, methods and classes of engines, runs and clients without a docstring.

    Left out: dunder methods, overloads, setters, what is nested in a function or in a private class, and methods that
    a documented Protocol of src already describes, in a class that derives from that Protocol or has all its methods.
    """
    protocols = documented_protocols(sources)
    for source in python_in(sources, "src"):
        if source.path.parts[2] in DOCUMENTED:
            yield from _missing_in(source, source.tree, protocols)


Protocols = Mapping[str, tuple[frozenset[str], frozenset[str]]]


def documented_protocols(sources: Sequence[Source]) -> Protocols:
    """Return for each Protocol of src the names of all its methods and of those that have a docstring."""
    protocols: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for source in python_in(sources, "src"):
        for node in source.nodes(ast.ClassDef):
            if any(_is_protocol(base) for base in node.bases):
                methods = [child for child in node.body if isinstance(child, Function)]
                documented = [method.name for method in methods if docstring_of(method)]
                protocols[node.name] = frozenset(method.name for method in methods), frozenset(documented)
    return protocols


def _is_protocol(base: ast.expr) -> bool:
    if isinstance(base, ast.Subscript):
        base = base.value
    return isinstance(base, ast.Name) and base.id == "Protocol"


def _missing_in(source: Source, scope: Scope, protocols: Protocols) -> Iterator[Finding]:
    described = _described_elsewhere(scope, protocols)
    for node in _definitions(scope.body):
        if node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _missing_in(source, node, protocols)
        elif node.name in described or _is_double(node):
            continue
        if docstring_of(node) is None:
            yield source.finding(node.lineno, f"{node.name} has no docstring")


def _definitions(body: Sequence[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """Yield the functions and classes of a scope, those under an `if` or a `try` too."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        elif isinstance(node, ast.If | ast.Try):
            yield from _definitions([*node.body, *node.orelse])


def _described_elsewhere(scope: Scope, protocols: Protocols) -> set[str]:
    if isinstance(scope, ast.Module):
        return set()
    own = {node.name for node in _definitions(scope.body)}
    bases = {base.id for base in scope.bases if isinstance(base, ast.Name)}
    described: set[str] = set()
    for name, (methods, documented) in protocols.items():
        if name in bases or (name != scope.name and methods <= own):
            described |= documented
    return described


def _is_double(function: Function) -> bool:
    """Tell whether a definition is an overload or a setter of a function that is described where it is written."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id == "overload":
            return True
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter", "overload"):
            return True
    return False


def docstring_forms(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find functions of src, private ones too, whose docstring does not begin with a verb in the imperative."""
    for source in python_in(sources, "src"):
        for function in source.functions:
            statement = docstring_of(function)
            text = ast.get_docstring(function) or ""
            if statement and not is_imperative(text):
                yield source.finding(statement.lineno, f"{function.name}: {text.partition(chr(10))[0]}")


def is_imperative(text: str) -> bool:
    """Tell whether a text seems to begin with a verb in the imperative, by the form of its first word."""
    match = re.match(r"[A-Z][a-z]+(?:-[a-z]+)?(?=[\s,.:;]|$)", text)
    if match is None:
        return False
    word = match[0].lower()
    if word in VERBS:
        return True
    return word not in OPENERS and not OTHER_FORMS.search(word)
