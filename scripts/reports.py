"""Makes the finished reports that the documentation shows: ACTG 175, one passed, one failed.

python scripts/reports.py docs/reports            # needs the extra `demo`
python scripts/reports.py docs/reports --picture  # and a picture of the first screen: Playwright, Chromium
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CATEGORIES = "hemo,homo,drugs,karnof,oprior,z30,zprior,race,gender,str2,strat,symptom,treat,offtrt,r,cens,arms"
OF_THE_TABLE = ["--key", "pidnum", "--drop", "Unnamed: 0"]


def local_cloaking(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "local_cloaking.cli", *arguments], check=False).returncode


def make(target: Path) -> None:
    package = importlib.util.find_spec("lifelines")
    if package is None or package.origin is None:
        sys.exit("lifelines, which ships the table of ACTG 175, is not installed: pip install '.[demo]'")
    originals = str(Path(package.origin).parent / "datasets" / "ACTG175.csv")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        avatars, projection = f"{folder}/avatars.csv", f"{folder}/projection.json"
        avatarise = ["avatarise", originals, "--k", "20", "--ncp", "5", "--seed", "175"]
        local_cloaking(
            *avatarise, *OF_THE_TABLE, "--categorical", CATEGORIES, "-o", avatars, "--projection", projection
        )
        for name, threshold, by in (
            ("passed", "5", "the data protection committee, 12 March 2026"),
            ("failed", "50", "the parameters of the demonstration"),
        ):
            local_cloaking(
                *["measure", originals, avatars, *OF_THE_TABLE, "--projection", projection, "--k", "20"],
                *["--threshold", threshold, "--threshold-set-by", by, "--data-set", "ACTG 175"],
                *["--groups", "gender,race,arms,strat"],
                *["--json", str(target / f"{name}.json"), "--report", str(target / f"{name}.html")],
            )
        failed = str(target / "failed.json")
        local_cloaking("report", failed, "-o", str(target / "failed.fr.html"), "--lang", "fr")


def picture(page: Path, target: Path) -> None:
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("no chromium is installed")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=browser, args=options, viewport={"width": 1280, "height": 800}
        )
        shown = context.pages[0] if context.pages else context.new_page()
        shown.goto(page.resolve().as_uri())
        shown.screenshot(path=str(target))
        context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", action="store_true")
    options = parser.parse_args()
    make(options.folder)
    if options.picture:
        picture(options.folder / "passed.html", options.folder / "passed.png")


if __name__ == "__main__":
    main()
