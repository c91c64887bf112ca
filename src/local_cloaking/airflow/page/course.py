"""The course of Local Cloaking over runs, with the threshold in force then: where its marks and lines lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import floor, log10

from local_cloaking.audit.index import IndexEntry


@dataclass(frozen=True)
class Mark:
    """One verdict in a drawing."""

    x: float
    y: float
    entry: IndexEntry


@dataclass(frozen=True)
class Course:
    """A drawing's geometry; the template draws it.

    Attributes
    ----------
    width, height
        Of the drawing.
    marks
        One a verdict, oldest first; where Local Cloaking is not known, on the ground line.
    lines
        Points of the lines between verdicts that follow each other and have a figure.
    threshold
        A path in steps.
    ticks
        Values of the axis, with their heights.
    """

    width: float
    height: float
    marks: tuple[Mark, ...]
    lines: tuple[str, ...]
    threshold: str
    ticks: tuple[tuple[float, float], ...]


def course_of(
    entries: Sequence[IndexEntry], *, width: float, height: float, left: float = 6, margin: float = 6
) -> Course:
    """Lay out the course of some verdicts.

    Parameters
    ----------
    entries
        At least one, oldest first.
    width, height
        Of the drawing.
    left, margin
        What stays free at the left, for the axis, and at the other sides.

    Examples
    --------
    >>> from local_cloaking.audit.index import IndexEntry
    >>> entry = IndexEntry("2026-11-30T08:09:05+01:00", "trial", "manual", "check", -1, 1, None, "passed", False,
    ...                    10.0, 5.0, 2139, "record.json", "", None)
    >>> course = course_of([entry, entry], width=100, height=50)
    >>> [(mark.x, mark.y) for mark in course.marks]
    [(28.0, 9.5), (72.0, 9.5)]
    """
    top = 1.1 * max(max(entry.threshold, entry.local_cloaking or 0) for entry in entries) or 1.0
    step = (width - left - margin) / len(entries)

    def height_of(value: float) -> float:
        return round(height - margin - (height - 2 * margin) * value / top, 1)

    marks = tuple(
        Mark(round(left + step * (place + 0.5), 1), height_of(entry.local_cloaking or 0), entry)
        for place, entry in enumerate(entries)
    )
    edges = [round(left + step * place, 1) for place in range(len(entries) + 1)]
    steps = [
        f"H{right}" if place and entries[place - 1].threshold == entry.threshold else f"{verb}{start} {y}H{right}"
        for place, (entry, (start, right)) in enumerate(zip(entries, pairwise(edges), strict=True))
        for y, verb in [(height_of(entry.threshold), "L" if place else "M")]
    ]
    return Course(
        width,
        height,
        marks,
        tuple(_lines(marks)),
        "".join(steps),
        tuple((value, height_of(value)) for value in _ticks(top)),
    )


def _lines(marks: Sequence[Mark]) -> list[str]:
    known = groupby(marks, key=lambda mark: mark.entry.local_cloaking is not None)
    pieces = [list(some) for is_known, some in known if is_known]
    return [" ".join(f"{mark.x},{mark.y}" for mark in piece) for piece in pieces if len(piece) > 1]


def _ticks(top: float) -> list[float]:
    """Return some round values between 0 and the top."""
    power = 10.0 ** floor(log10(top))
    step = next(size * power for size in (0.2, 0.5, 1.0, 2.0) if top / (size * power) <= 5)
    # Each from the step itself: added up, they would not stay round.
    return [round(step * place, 12) for place in range(int(top / step) + 1)]
