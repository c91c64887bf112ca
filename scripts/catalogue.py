"""Report what the catalogues of the report's languages lack, and what they hold in vain.

The texts are found with Babel, in the report and the page inside Airflow; the sentences of a record, wherever the
package makes warnings, reasons and remedies. What lacks is printed as entries of a catalogue, to be copied and
translated.

    python scripts/catalogue.py
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Message
from babel.messages.extract import extract_from_dir

from local_cloaking.audit.languages import SENTENCES, SOURCE, languages, read_catalogue

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "local_cloaking"

FOLDERS = ["audit", "airflow/page"]
METHODS = [("**.py", "python"), ("templates/**.j2", "jinja2.ext:babel_extract")]
#: What marks a text: `_` in templates, the methods of `Language` in Python, ``many`` with both its forms.
KEYWORDS = {"_": None, "text": None, "many": (1, 2)}

#: Functions of such names, variables and arguments of these names make sentences of a record.
TELLING = re.compile("warn|reason|remedy|judge")
VARIABLES = {"TIE_RULE", "more", "reason", "reasons", "seen", "signs", "warning", "warnings"}


def texts() -> dict[str | tuple[str, ...], str]:
    """Return the texts that are marked in the sources, each with the place where it is found first."""
    found: dict[str | tuple[str, ...], str] = {}
    for folder in FOLDERS:
        for name, line, message, _comments, _context in extract_from_dir(
            PACKAGE / folder, method_map=METHODS, keywords=KEYWORDS
        ):
            found.setdefault(message, f"{folder}/{name}:{line}")
    return found


def sentences() -> dict[tuple[str, ...], str]:
    """Return the sentences, or parts of one, that the sources make: their literal pieces, each with a place."""
    found: dict[tuple[str, ...], str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in telling_nodes(tree):
            for pieces, line in strings(node):
                found.setdefault(pieces, f"{path.relative_to(PACKAGE)}:{line}")
    return found


def telling_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a module that make warnings, reasons or remedies."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and TELLING.search(node.name):
            yield from node.body
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id in VARIABLES for target in targets):
                yield node.value
        elif isinstance(node, ast.Call):
            yield from telling_arguments(node)


def telling_arguments(call: ast.Call) -> Iterator[ast.AST]:
    """Yield what is appended to such a variable, or given as such an argument."""
    function = call.func
    adds = isinstance(function, ast.Attribute) and function.attr in ("append", "extend")
    if adds and isinstance(function.value, ast.Name) and function.value.id in VARIABLES:
        yield from call.args
    # Not `remedy`: that is an argument of each error, which no record holds.
    yield from (keyword.value for keyword in call.keywords if keyword.arg in VARIABLES)


def strings(node: ast.AST) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the literal pieces of each text of several words below a node; not of errors, nor docstrings."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Raise) or docstring:
        return
    if isinstance(node, ast.JoinedStr | ast.Constant):
        values = node.values if isinstance(node, ast.JoinedStr) else [node]
        pieces = tuple(value.value for value in values if isinstance(value, ast.Constant))
        words = "".join(piece for piece in pieces if isinstance(piece, str))
        if " " in words and re.search("[a-z]", words):
            yield pieces, node.lineno
        return
    for child in ast.iter_child_nodes(node):
        yield from strings(child)


def untranslated(code: str) -> dict[str, str]:
    """Return the texts and sentences that a catalogue lacks, as entries of it, each with its place."""
    catalogue = read_catalogue(code)
    lacking = {}
    for message, place in texts().items():
        found = catalogue.get(message)
        if (
            found is None
            or found.fuzzy
            or not all([found.string] if isinstance(found.string, str) else found.string)
        ):
            lacking[entry(message)] = place
    templates = [message.id for message in catalogue if message.context == SENTENCES and message.string]
    for pieces, place in sentences().items():
        # A part may begin with the comma that joins it to the one before.
        pattern = re.compile(".*".join(map(re.escape, pieces)).removeprefix(",\\ "))
        if not any(pattern.search(template) for template in templates):
            lacking[f'msgctxt "{SENTENCES}"\n{entry("%(value)s".join(pieces))}'] = place
    return lacking


def unused(code: str) -> list[str]:
    """Return the texts of a catalogue that stand in no source."""
    marked = texts()
    return [str(message.id) for message in entries(code) if message.context is None and message.id not in marked]


def entries(code: str) -> list[Message]:
    """Return the entries of a catalogue without its header."""
    return [message for message in read_catalogue(code) if message.id]


def entry(message: str | tuple[str, ...]) -> str:
    """Write a text as an entry of a catalogue, not yet translated."""
    one, *more = (message,) if isinstance(message, str) else message
    lines = [f"msgid {quoted(one)}", *(f"msgid_plural {quoted(text)}" for text in more)]
    return "\n".join([*lines, *(['msgstr[0] ""', 'msgstr[1] ""'] if more else ['msgstr ""'])])


def quoted(text: str) -> str:
    """Write a text as a catalogue does."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def main(arguments: list[str] | None = None) -> int:
    """Print the report; 1 where something lacks."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None).parse_args(arguments)
    complete = True
    for code in languages():
        if code == SOURCE:
            continue
        lacking, vain = untranslated(code), unused(code)
        print(f"{code}: {len(entries(code))} entries, {len(lacking)} lacking, {len(vain)} in no source")
        for text, place in lacking.items():
            print(f"\n#: {place}\n{text}")
        for text in vain:
            print(f"\nin no source: {text}")
        complete = complete and not lacking
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
