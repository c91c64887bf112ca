"""Every public report whose fault is tried here is named by the test that tries it."""

from __future__ import annotations

import re
from pathlib import Path

REPORTS = {
    "Anonymeter": "37",
    "LeakPro": "182",
    "SDMetrics": "58 693 738 760",
    "SDV": "645 647",
    "TorchDR": "295",
    "airflow": "15468 17320 26178 34496 37089 46194 49646 52753 54097 55571 57545 59373 62686 70296 71471 72655",
    "cosmos": "1537",
    "dag-factory": "884",
    "faiss": "297 563 3245 5327",
    "great-expectations provider": "138 195",
    "great_expectations": "3705",
    "octopize": "changelog",
    "prince": "40 55 56 69 105 107 109 117 134 135 169",
    "soda-core": "684 987",
    "synthcity": "300",
}

#: As in ``[airflow 54097, 52753, PR 62686]`` and in ``@case("synthcity-PR-300")``.
_IN_BRACKETS = re.compile(r"\[([A-Za-z_ -]+?) ((?:(?:PR )?\d+(?:, )?)+)\]")
_OF_A_CASE = re.compile(r'"([A-Za-z]+)-(?:PR-)?(\d+|changelog)"')


def test_each_report_is_named_by_a_test() -> None:
    here = Path(__file__)
    texts = [path.read_text() for path in here.parent.rglob("test_*.py") if path != here]
    named = {(tool, number) for text in texts for tool, number in _OF_A_CASE.findall(text)}
    for text in texts:
        for tool, numbers in _IN_BRACKETS.findall(text):
            named |= {(tool, number) for number in re.findall(r"\d+", numbers)}
    wanted = {(tool, number) for tool, numbers in REPORTS.items() for number in numbers.split()}
    assert wanted <= named, wanted - named
