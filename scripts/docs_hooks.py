"""What the documentation needs beside MkDocs: formulae as MathML, and files of the repository behind links."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Where the site keeps the files that lie outside docs/.
COPIES = "repository"
#: What the page on the command line has where the commands belong.
COMMANDS = "<!-- commands -->"
_OUTSIDE = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Draw fences of the kind `math` while the site is built: browsers show MathML without any script."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    if not any(fence["name"] == "math" for fence in fences):
        fences.append({"name": "math", "class": "math", "format": _formula})
    return config


def _formula(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="math">{convert(source.strip(), display="block")}</div>'


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to the repository, as `../src/...`, lead to copies of those files in the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def to_copy(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, found["path"]))
        if path.startswith("docs/") or path.endswith(".md") or not (ROOT / path).is_file():
            return found[0]  # MkDocs follows it, or says what is wrong with it
        return f"]({posixpath.relpath(_copy(path, config, files), folder or '.')}"

    markdown = _OUTSIDE.sub(to_copy, markdown)
    return markdown.replace(COMMANDS, _commands()) if COMMANDS in markdown else markdown


def _commands() -> str:
    """Return what each command says of itself."""
    from typer.testing import CliRunner

    from local_cloaking.cli import app

    def said(*command: str) -> str:
        shown = CliRunner().invoke(app, [*command, "--help"], prog_name="local-cloaking", color=False)
        return f"```text\n{shown.output.strip()}\n```"

    names = [found.name or str(getattr(found.callback, "__name__", "")) for found in app.registered_commands]
    return "\n\n".join([said(), *(f"## {name}\n\n{said(name)}" for name in names)])


def _copy(path: str, config: MkDocsConfig, files: Files) -> str:
    """Add a file of the repository to the site, as plain text where a browser would otherwise not show it."""
    uri = f"{COPIES}/{path}"
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return uri
