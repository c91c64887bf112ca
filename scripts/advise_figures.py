"""Print the figures of docs/advise.md: which k is found on ACTG 175, and how often other seeds reach with it.

python scripts/advise_figures.py               # needs the extra `demo`; minutes
python scripts/advise_figures.py --others 5    # fewer other seeds
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from local_cloaking.advice import conclude, find
from local_cloaking.advising import Request, open_request
from local_cloaking.audit.advice import advice_entries
from local_cloaking.summary import advice_lines
from local_cloaking.trying import Search

#: As in ``dags/local_cloaking_advise.py``.
CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip
THRESHOLD, NCP = 15, 5
MARGINS = (0, 1, 2)
#: The seeds of the search are 1, 2 and 3.
FIRST_OTHER_SEED = 101


def request(margin: int, seeds: list[int]) -> Request:
    package = importlib.util.find_spec("lifelines")
    if package is None or package.origin is None:
        sys.exit("lifelines, which ships the table of ACTG 175, is not installed: pip install '.[demo]'")
    return Request(
        Path(package.origin).parent / "datasets" / "ACTG175.csv",
        THRESHOLD,
        margin=margin,
        seeds=seeds,
        ncp=NCP,
        key="pidnum",
        categorical=CATEGORIES,
        drop=["Unnamed: 0"],
    )


def reaching(search: Search, k: int) -> int:
    return sum(trial.reaches for trial in search.at(k).trials)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--others", type=int, default=20, help="other seeds to try the k found with")
    options = parser.parse_args(arguments)
    if options.others < 1:
        parser.error("give one other seed or more")
    others = open_request(request(0, list(range(FIRST_OTHER_SEED, FIRST_OTHER_SEED + options.others)))).search
    rows = []
    for margin in MARGINS:
        opened = open_request(request(margin, [1, 2, 3]))
        advice = conclude(find(opened.search), opened.search.aim, opened.n)
        if margin == 0:
            print("\n".join(advice_lines(advice_entries(advice))), flush=True)
        tried, k = len(advice.tried), advice.k
        told = "none" if k is None else f"{reaching(others, k)} of {options.others}"
        rows.append(f"| {margin} | {k} | {tried} | {told} |")
    head = f"| margin | k | values tried | other seeds that reach {THRESHOLD} with it |"
    print("", head, "| --- | --- | --- | --- |", *rows, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
