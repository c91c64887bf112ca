"""The documentation site, built as `make docs` builds it: nothing in it asks another site for anything."""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.browser import Browser, browser
from tests.package.conftest import ROOT

__all__ = ["browser"]

pytestmark = pytest.mark.package

pytest.importorskip("mkdocs", reason="MkDocs is not installed (extra `docs`)")

#: Attributes by which a page loads something; a link that a reader follows is none.
LOADS = {"src", "srcset", "poster", "data", "action", "background"}
_FOREIGN = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
_IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class Loaded(HTMLParser):
    """Gathers what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loads = LOADS | ({"href"} if tag == "link" else set())
        for name, value in attrs:
            if value and (
                (name in loads and _FOREIGN.match(value)) or (name == "style" and _IN_STYLES.search(value))
            ):
                self.foreign.append(f"<{tag} {name}={value!r}>")


def loaded_by(text: str) -> list[str]:
    page = Loaded()
    page.feed(text)
    return page.foreign


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Whoever asked the network would find a proxy that is not there.
    offline = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.org/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<img src="http://example.org/x.png">',
        '<p style="background: url(https://example.org/x.png)">',
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(text: str) -> None:
    assert len(loaded_by(text)) == 1
    assert loaded_by('<a href="https://example.org/">a link</a>') == []


def test_no_page_and_no_style_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    foreign = {str(page.relative_to(site)): loaded_by(page.read_text(encoding="utf-8")) for page in pages}
    assert {name: found for name, found in foreign.items() if found} == {}
    for style in site.rglob("*.css"):
        assert _IN_STYLES.findall(style.read_text(encoding="utf-8")) == [], style.name


def test_formulae_are_drawn_when_the_site_is_built(site: Path) -> None:
    page = (site / "method.html").read_text(encoding="utf-8")
    assert page.count("<math ") >= 3
    assert "\\frac" not in page


def test_reference_holds_every_public_name_with_its_text(site: Path) -> None:
    import local_cloaking
    import local_cloaking.airflow as room

    for page, names in (("python", local_cloaking.__all__), ("airflow", room.__all__)):
        text = (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
        anchors = set(re.findall(r'<h3[^>]* id="([\w.]+)"', text))
        assert {name for name in names if not any(a.endswith(f".{name}") for a in anchors)} == set()
        # Read as what they are, not shown as they are written.
        assert "<p>:param" not in text
        assert "Parameters\n-------" not in text
    command_line = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for command in ("measure", "report", "verify", "avatarise"):
        assert f'id="{command}"' in command_line


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_browser_asks_nobody_else(site: Path, served: str, browser: Browser) -> None:
    """Also what scripts ask for; and the search finds, without a network."""
    asked: list[str] = []
    page = browser.context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index", "method", "dpo.fr", "reference/python"):
        page.goto(f"{served}/{name}.html")
        page.wait_for_load_state("networkidle")
    page.locator("input[name=query]").click()
    page.keyboard.type("plugins.zip")
    page.locator(".md-search-result__item a").first.wait_for(timeout=60_000)
    assert "install" in str(page.locator(".md-search-result__item a").first.get_attribute("href"))
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith(served) and not url.startswith("data:")] == []
