"""A real browser, Debian's chromium, and what a page shows in it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: Severities that axe-core's findings may not have.
GRAVE = ("serious", "critical")


@dataclass
class Shown:
    """A file, opened; what it asked for and what went wrong."""

    page: Any = field(repr=False)
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def overflows(self) -> bool:
        """Whether the page can be scrolled sideways."""
        return bool(
            self.page.evaluate("document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth")
        )

    def bottom_of(self, selector: str) -> float:
        """Where the lowest of some elements ends, in pixels from the top."""
        boxes = [found.bounding_box() for found in self.page.locator(selector).all()]
        assert boxes, f"nothing on the page is {selector}"
        return max(float(box["y"] + box["height"]) for box in boxes)

    def grave_findings(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        # Evaluated, not added as an element: the page's own policy allows no script.
        self.page.evaluate(axe_core().read_text(encoding="utf-8"))
        violations = self.page.evaluate("axe.run().then(result => result.violations)")
        return [
            f"{found['id']}: {json.dumps([node['html'][:200] for node in found['nodes'][:3]])}"
            for found in violations
            if found["impact"] in GRAVE
        ]

    def printed(self) -> bytes:
        """The page as a PDF, on the paper that it asks for."""
        return bytes(self.page.pdf(prefer_css_page_size=True))


def absent(reason: str) -> NoReturn:
    """Skip the test, or fail it where everything is to be tested, as `.ci/run` asks."""
    if os.environ.get("LOCAL_CLOAKING_TEST_ALL"):
        pytest.fail(reason)
    pytest.skip(reason)


def axe_core() -> Path:
    """Where axe-core lies; skips the test where it is not installed."""
    usual = Path(__file__).parents[1] / ".cache/npm/node_modules/axe-core/axe.min.js"
    path = Path(os.environ.get("LOCAL_CLOAKING_AXE", usual))
    if not path.is_file():
        absent("axe-core is not installed (npm install --prefix .cache/npm axe-core)")
    return path


@dataclass
class Browser:
    """A running browser."""

    context: Any = field(repr=False)

    @contextmanager
    def showing(self, file: Path, width: int, height: int) -> Iterator[Shown]:
        """Open a file in a window of some size."""
        page = self.context.new_page()
        shown = Shown(page)
        page.on("request", lambda request: shown.requests.append(request.url))
        page.on("console", lambda message: shown.complaints.append(message.text))
        page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (shown.complaints.append(dialog.message), dialog.dismiss()))
        try:
            page.set_viewport_size({"width": width, "height": height})
            page.goto(file.as_uri())
            yield shown
        finally:
            page.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with a fresh profile; skips where there is none."""
    executable = shutil.which("chromium")
    if executable is None:
        absent("chromium is not installed")
    if importlib.util.find_spec("playwright") is None:
        absent("playwright is not installed (extra `dev`)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("browser"), executable_path=executable, args=_ARGUMENTS
        )
        try:
            yield Browser(context)
        finally:
            context.close()
