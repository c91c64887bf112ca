"""What turns bytes into code is not used: no pickle, no eval, no YAML, no XML with entities, no shell.

Read from the sources as Python reads them, so that no spelling of an import hides anything. What is allowed stands
here by name, with the reason; an allowance that nothing needs any longer fails, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "dags", "plugins", "scripts")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

#: Modules that read code, or run it, by what they are given.
MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "torch", "copyreg"),
    *("yaml", "ruamel", "oyaml"),
    *("xml", "lxml", "xmlrpc", "plistlib", "html5lib"),
    *("subprocess", "pty", "pexpect", "commands", "ctypes", "cffi", "code", "codeop", "runpy"),
    *("telnetlib", "ftplib", "imp"),
}
#: Called by these names alone.
BUILTINS = {"eval", "exec", "compile", "__import__", "breakpoint"}
#: Called as somebody's method or function.
CALLS = {
    *("eval", "read_pickle", "to_pickle", "read_xml", "to_xml", "read_html", "mktemp"),
    *("system", "popen", "startfile", "create_subprocess_shell", "getoutput", "getstatusoutput"),
    *("fromfile", "set_option_context", "unsafe_load", "full_load", "load_module", "exec_module"),
}
#: Of `os`: programs in the place of this one, or beside it.
OS_CALLS = ("exec", "spawn", "posix_spawn", "fork")

#: Where one of them is needed, and why it does no harm there.
ALLOWED = {
    ("src/local_cloaking/__init__.py", "import_module"): "modules of its own, by the names of its own table",
    ("src/local_cloaking/airflow/__init__.py", "import_module"): "the same",
    ("src/local_cloaking/commands.py", "subprocess"): "the user's own command, in words, without a shell",
    ("src/local_cloaking/tables/partitions.py", "pickle"): "asks whether a file system can be sent; reads none",
    ("scripts/audit.py", "subprocess"): "runs bandit and pip-audit",
    ("scripts/demo.py", "subprocess"): "runs this package's and Airflow's command lines",
    ("scripts/reports.py", "subprocess"): "runs this package's command line and a browser",
    ("scripts/scaling_figures.py", "subprocess"): "starts the workers that it measures",
    ("scripts/sql_memory.py", "subprocess"): "runs itself in a process of its own",
}


def dangers(source: str) -> Iterator[str]:
    """Name what a source imports or calls that could run what it is given."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name for alias in node.names if (name := alias.name.split(".")[0]) in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if (name := node.module.split(".")[0]) in MODULES:
                yield name
            yield from (alias.name for alias in node.names if alias.name in CALLS)
        elif isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_call(call: ast.Call) -> Iterator[str]:
    function = call.func
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    of = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    if isinstance(function, ast.Name) and name in BUILTINS:
        yield name
    if isinstance(function, ast.Attribute) and (name in CALLS or (of == "os" and name.startswith(OS_CALLS))):
        yield name
    if of in ("pickle", "marshal") and name in ("load", "loads", "Unpickler"):
        yield f"{of}.{name}"
    if _is(given.get("shell"), other_than=False):
        yield "shell"
    if _is(given.get("allow_pickle"), other_than=False):
        yield "allow_pickle"
    if name == "import_module" and not all(isinstance(argument, ast.Constant) for argument in call.args):
        yield "import_module"
    if name in ("Environment", "Template") and not _is(given.get("autoescape"), value=True):
        yield f"{name} without autoescape"


def _is(node: ast.expr | None, *, value: object = None, other_than: object = None) -> bool:
    """Tell whether an argument is given as a value, or as anything other than one."""
    if node is None:
        return False
    said = node.value if isinstance(node, ast.Constant) else node
    return said is value if other_than is None else said is not other_than


def found() -> set[tuple[str, str]]:
    return {
        (path.relative_to(ROOT).as_posix(), danger)
        for path in SOURCES
        for danger in dangers(path.read_text(encoding="utf-8"))
    }


def test_nothing_runs_what_it_is_given() -> None:
    assert len(SOURCES) > 80
    assert found() - set(ALLOWED) == set()


def test_nothing_is_allowed_that_is_not_needed() -> None:
    assert set(ALLOWED) - found() == set()


@pytest.mark.parametrize(
    ("source", "danger"),
    [
        ("import pickle as harmless", "pickle"),
        ("from xml.etree import ElementTree", "xml"),
        ("def f():\n    from yaml import safe_load as read", "yaml"),
        ("import joblib.numpy_pickle", "joblib"),
        ("x = eval('1')", "eval"),
        ("import builtins\nbuiltins.eval('1')", "eval"),
        ("frame.eval('a + b')", "eval"),
        ("import os\nos.system('ls')", "system"),
        ("import os\nos.execvp('ls', ['ls'])", "execvp"),
        ("run(['ls'], shell=True)", "shell"),
        ("run('ls', shell=wanted)", "shell"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("pd.read_pickle(path)", "read_pickle"),
        ("from pandas import read_pickle", "read_pickle"),
        ("import importlib\nimportlib.import_module(name)", "import_module"),
        ("jinja2.Environment(loader=loader)", "Environment without autoescape"),
        ("jinja2.Environment(autoescape=False)", "Environment without autoescape"),
        ("jinja2.Template(text)", "Template without autoescape"),
        ("__import__(name)", "__import__"),
    ],
)
def test_it_would_be_seen(source: str, danger: str) -> None:
    assert danger in set(dangers(source))


def test_what_is_harmless_is_not_taken_for_it() -> None:
    source = "run(['ls'], shell=False)\nnp.load(path, allow_pickle=False)\nre.compile('x')\njson.load(file)"
    assert set(dangers(source)) == set()


# Templates -----------------------------------------------------------------------------------------------------

TEMPLATES = sorted((ROOT / "src").rglob("*.j2"))


def test_every_template_is_escaped() -> None:
    """Read by Jinja itself: no filter, and no block, that switches escaping off."""
    import jinja2
    from jinja2 import nodes

    environment = jinja2.Environment(autoescape=True, extensions=["jinja2.ext.do"])
    assert len(TEMPLATES) > 8
    for path in TEMPLATES:
        text = path.read_text(encoding="utf-8")
        tree = environment.parse(text)
        filters = {one.name for one in tree.find_all(nodes.Filter)}
        assert not filters & {"safe", "forceescape", "xmlattr"}, path.name
        assert not [*tree.find_all(nodes.MarkSafe), *tree.find_all(nodes.ScopedEvalContextModifier)], path.name
        assert "autoescape" not in text, path.name


def test_every_environment_escapes_and_knows_no_loader_but_the_packages() -> None:
    import jinja2

    from local_cloaking.audit import pages

    for package in ("local_cloaking.audit", "local_cloaking.airflow.page"):
        environment = pages._environment(package)
        assert environment.autoescape is True
        assert isinstance(environment.loader, jinja2.PackageLoader)
        assert environment.undefined is jinja2.StrictUndefined
        assert environment.from_string("{{ it }}").render(it="<script>&\"'") == "&lt;script&gt;&amp;&#34;&#39;"


#: What is shown as it is: drawings, made from numbers, whose words are escaped where they are drawn.
DRAWN = {
    ("src/local_cloaking/audit/report.py", "draw_histogram"),
    ("src/local_cloaking/audit/report.py", "draw_cumulative"),
    ("src/local_cloaking/audit/report.py", "draw_ladder"),
    ("src/local_cloaking/audit/advice_report.py", "draw_course"),
}


def test_only_drawings_are_shown_as_they_are() -> None:
    shown, made = set(), set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            where = path.relative_to(ROOT).as_posix()
            if name in ("Markup", "SafeString", "mark_safe"):
                made.add(where)
            if name == "as_markup":
                (argument,) = node.args
                assert isinstance(argument, ast.Call)
                shown.add((where, getattr(argument.func, "id", "?")))
    assert made == {"src/local_cloaking/audit/pages.py"}
    assert shown == DRAWN
