"""The figures of a report, as SVG that stands in the page: counts and their shares, never an individual.

No text of a user's enters a figure. The same numbers give the same bytes. matplotlib, which takes a second to
import, waits until a figure is drawn; its interface with global figures is not used.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.audit.statistics import Distribution

if TYPE_CHECKING:
    from local_cloaking.audit.languages import Language

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Size in the units of the drawing; the page scales it to its own width, half a page or a telephone's screen.
_WIDTH, _HEIGHT = 460, 290
_INK, _MUTED, _GRID = "#1c2733", "#4d5a66", "#d9dee3"
_ENOUGH, _BELOW, _BOUND = "#41719c", "#cf8a3e", "#9c2a22"
#: Bars in each doubling of 1 + count, where counts are large.
_BARS_PER_DOUBLING = 3
#: Points of the cumulative curve.
_POINTS = 250

# Ids that nothing refers to, and a style that would reach the whole page.
_CLUTTER = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*">')
_FONT = re.compile(r"font-family:[^;\"]*;?")


def draw_histogram(distribution: Distribution, threshold: float | None, language: Language) -> str:
    """Draw how the counts are distributed, with threshold and median.

    The axis of counts grows with log(1 + count), so that 0 and a million stand on it. The area of a bar is its
    share of the individuals.

    Parameters
    ----------
    distribution
        Of one individual or more.
    threshold
        The smallest Local Cloaking that passes, or None.
    language
        Of the labels.

    Returns
    -------
    An ``svg`` element.

    Examples
    --------
    >>> from local_cloaking.audit.languages import language_of
    >>> counts = Distribution.of({"count": [0, 3, 8], "individuals": [10, 20, 30]})
    >>> draw_histogram(counts, 5.0, language_of(None))[:16]
    '<svg role="img" '
    """
    edges = bar_edges(distribution.highest, threshold)
    reached = np.concatenate([[0.0], distribution.share_at_most(edges[1:] - 1)])
    widths = np.diff(_left_of(edges))

    def draw(axes: Any) -> None:
        colours = [_BELOW if threshold is not None and edge < threshold else _ENOUGH for edge in edges[:-1]]
        axes.bar(
            _left_of(edges[:-1]),
            np.diff(reached) / widths,
            widths,
            align="edge",
            color=colours,
            edgecolor="white",
            linewidth=0.6,
        )
        axes.margins(y=0.05)
        axes.set_ylabel(language.text("% per doubling of 1 + count"))
        _count_axis(axes, distribution.highest, language)
        _mark_threshold_and_median(axes, distribution, threshold, language)

    return _svg("histogram", draw, _alternative(distribution, threshold, language), language)


def draw_cumulative(distribution: Distribution, threshold: float | None, language: Language) -> str:
    """Draw the share of individuals with each count or fewer; see `draw_histogram`.

    Examples
    --------
    >>> from local_cloaking.audit.languages import language_of
    >>> counts = Distribution.of({"count": [0, 3, 8], "individuals": [10, 20, 30]})
    >>> draw_cumulative(counts, None, language_of(None))[-6:]
    '</svg>'
    """
    highest = distribution.highest
    spread = np.geomspace(1, highest + 1, _POINTS).round().astype(np.int64) - 1
    places = np.unique(spread)
    shares = distribution.share_at_most(places)

    def draw(axes: Any) -> None:
        # A share is reached at its count, and kept until the next.
        axes.step(
            np.concatenate([_left_of(places), _left_of(np.array([highest + 1]))]),
            np.concatenate([shares, [100.0]]),
            where="post",
            color=_ENOUGH,
            linewidth=2,
        )
        axes.axhline(50, color=_MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_ylim(0, 103)
        axes.set_yticks([0, 25, 50, 75, 100])
        axes.set_ylabel(language.text("% with so many or fewer"))
        _count_axis(axes, highest, language)
        _mark_threshold_and_median(axes, distribution, threshold, language)

    return _svg("cumulative", draw, _cumulative_alternative(distribution, language), language)


def draw_ladder(rungs: Sequence[Mapping[str, Any]], ncp: int, threshold: float | None, language: Language) -> str:
    """Draw Local Cloaking over the number of components.

    Parameters
    ----------
    rungs
        Entries with ``ncp`` and ``local_cloaking``, which is None where there is no figure; at least one has one.
    ncp
        The number of components in use, which is marked.
    threshold, language
        As in `draw_histogram`.

    Examples
    --------
    >>> from local_cloaking.audit.languages import language_of
    >>> rungs = [{"ncp": 1, "local_cloaking": 40.0}, {"ncp": 2, "local_cloaking": 21.0}]
    >>> draw_ladder(rungs, 2, 5.0, language_of(None))[:16]
    '<svg role="img" '
    """
    known = [(rung["ncp"], rung["local_cloaking"]) for rung in rungs if rung["local_cloaking"] is not None]

    def draw(axes: Any) -> None:
        axes.plot(*zip(*known, strict=True), color=_ENOUGH, linewidth=1.5, marker="o", markersize=4)
        for place, value in known:
            if place == ncp:
                axes.plot([place], [value], marker="o", markersize=10, color=_INK)
                _name_point(axes, (place, value), language.text("in use"))
        axes.set_ylim(0, 1.2 * max(max(value for _, value in known), threshold or 0.0, 1.0))
        axes.set_xlim(0.5, max(rung["ncp"] for rung in rungs) + 0.5)
        axes.set_xticks([rung["ncp"] for rung in rungs])
        axes.set_xlabel(language.text("components (ncp)"))
        axes.set_ylabel("Local Cloaking")
        axes.yaxis.get_major_locator().set_params(nbins=5)
        if threshold is not None:
            axes.axhline(threshold, color=_BOUND, linewidth=1.3, linestyle=(0, (5, 2)))
            _label(axes, 0.5, _threshold_text(threshold, language), _BOUND, row=0, left=False)

    alternative = language.text("Local Cloaking by number of components; the table beside it has the figures.")
    return _svg("ladder", draw, alternative, language)


@dataclass(frozen=True)
class Course:
    """A figure over the values of k that were tried.

    Attributes
    ----------
    name
        Of the drawing, for ids of its own.
    label
        Of the axis.
    points
        For each k, rising, the figures of its seeds; one without a figure is None.
    worst
        Which of the seeds' figures counts: ``min`` or ``max``.
    bound, bound_text
        A line across, and what stands on it; None for none.
    from_zero
        Whether the axis starts at 0.
    """

    name: str
    label: str
    points: Sequence[tuple[int, Sequence[float | None]]]
    worst: Callable[[Sequence[float]], float]
    bound: float | None = None
    bound_text: str = ""
    from_zero: bool = True

    @property
    def counting(self) -> list[tuple[int, float]]:
        """For each k whose seeds all have a figure, the one that counts."""
        return [
            (k, self.worst([value for value in values if value is not None]))
            for k, values in self.points
            if None not in values
        ]


def draw_course(course: Course, found: int | None, alternative: str, language: Language) -> str:
    """Draw a figure over k: a point for each seed, a line through the least favourable ones, and the k found.

    Parameters
    ----------
    course
        What to draw.
    found
        The k that is marked, or None.
    alternative
        What the drawing shows, in words.
    language
        Of the labels.

    Examples
    --------
    >>> from local_cloaking.audit.languages import language_of
    >>> course = Course("lc", "Local Cloaking", [(5, [5.0, 6.0]), (10, [7.0, 9.0])], min, bound=7.0)
    >>> draw_course(course, 10, "Local Cloaking over k", language_of(None))[:16]
    '<svg role="img" '
    """
    seeds = [(k, value) for k, values in course.points for value in values if value is not None]

    def draw(axes: Any) -> None:
        axes.scatter([np.log2(k) for k, _ in seeds], [value for _, value in seeds], s=14, color=_BELOW)
        counting = course.counting
        places = [np.log2(k) for k, _ in counting]
        axes.plot(places, [value for _, value in counting], color=_ENOUGH, linewidth=1.5, marker="o", markersize=4)
        _k_axis(axes, [k for k, _ in course.points], found, language)
        axes.set_ylabel(course.label)
        axes.yaxis.set_major_formatter(lambda value, _: language.number(value, 2))
        if course.bound is not None:
            axes.axhline(course.bound, color=_BOUND, linewidth=1.3, linestyle=(0, (5, 2)))
            _label(axes, axes.get_xlim()[0], course.bound_text, _BOUND, row=0, left=False)
        if course.from_zero:
            axes.set_ylim(0, 1.1 * max([value for _, value in seeds] + [course.bound or 0.0, 1e-9]))
        if found is not None:
            axes.axvline(np.log2(found), color=_INK, linewidth=1.3)
            _label(axes, float(np.log2(found)), f"k = {language.number(found, 0)}", _INK, row=1, left=False)

    return _svg(course.name, draw, alternative, language)


def _k_axis(axes: Any, tried: Sequence[int], found: int | None, language: Language) -> None:
    """Draw an axis that doubles evenly, labelled where there is room: the k found first, then the ends."""
    left, right = float(np.log2(min(tried))) - 0.3, float(np.log2(max(tried))) + 0.3
    axes.set_xlim(left, right)
    axes.set_xlabel(language.text("k: neighbours that an avatar draws on"))
    wanted = [*([] if found is None else [found]), min(tried), max(tried), *tried]
    labels: dict[float, str] = {}
    for k in dict.fromkeys(wanted):
        place = float(np.log2(k))
        # About as wide as three digits and a gap.
        if all(abs(place - other) / (right - left) * 0.87 * _WIDTH > 32 for other in labels):
            labels[place] = language.number(k, 0)
    axes.set_xticks(list(labels), list(labels.values()))


def bar_edges(highest: int, threshold: float | None) -> Integers:
    """Return where the bars of a histogram begin, rising, and where the last one ends.

    A bar holds the whole numbers from its edge to the next edge less one. One count a bar at first, then bars that
    widen by a constant factor; counts below the threshold and others never share a bar.

    Examples
    --------
    >>> bar_edges(20, 5.0)
    array([ 0,  1,  2,  3,  4,  5,  7,  9, 12, 15, 19, 21])
    """
    doublings = np.arange(0, np.log2(highest + 2) + 1, 1 / _BARS_PER_DOUBLING)
    edges = [*np.round(2.0**doublings).astype(np.int64) - 1]
    if threshold is not None:
        edges.append(np.int64(np.ceil(min(threshold, highest + 1))))
    inner = np.unique(np.array(edges, dtype=np.int64))
    return np.concatenate([inner[inner <= highest], [np.int64(highest + 1)]])


def _left_of(counts: Integers) -> Floats:
    """Return where on the axis the bar of a count begins: those of 0, 1 and 3 are one doubling apart."""
    places: Floats = np.log2(1.0 + counts)
    return places


def _middle_of(value: float) -> float:
    return float(np.log2(1.5 + value))


def _count_axis(axes: Any, highest: int, language: Language) -> None:
    right = float(_left_of(np.array([highest + 1]))[0])
    axes.set_xlim(0, right)
    axes.set_xlabel(language.text("count: other avatars as close as the own one, or closer"))
    candidates = [0, *(digit * 10**power for power in range(9) for digit in (1, 2, 5))]
    labels: dict[float, str] = {}
    free = -1.0
    for value in candidates:
        # As many labels as fit: a digit is about seven units wide.
        text = language.number(value, 0)
        half, place = 3.5 * len(text) + 4, _middle_of(value)
        middle = place / right * 0.87 * _WIDTH
        if value <= highest and middle - half > free:
            labels[place] = text
            free = middle + half
    axes.set_xticks(list(labels), list(labels.values()))


def _mark_threshold_and_median(
    axes: Any, distribution: Distribution, threshold: float | None, language: Language
) -> None:
    median = _middle_of(distribution.median)
    text = language.text("median %(value)s", value=language.number(distribution.median))
    axes.axvline(median, color=_INK, linewidth=1.6)
    if threshold is None:
        _label(axes, median, text, _INK, row=0, left=median > sum(axes.get_xlim()) / 2)
        return
    # On the edge of the first bar that reaches it, at the axis' end where none does.
    place = float(np.log2(1.0 + min(float(np.ceil(threshold)), distribution.highest + 1.0)))
    axes.axvline(place, color=_BOUND, linewidth=1.6, linestyle=(0, (5, 2)), clip_on=False)
    # Each label on the outer side of its line.
    _label(axes, median, text, _INK, row=0, left=median < place)
    _label(axes, place, _threshold_text(threshold, language), _BOUND, row=1, left=place <= median)


def _threshold_text(threshold: float, language: Language) -> str:
    return language.text("threshold %(value)s", value=language.number(threshold, 12))


def _name_point(axes: Any, point: tuple[float, float], text: str) -> None:
    # On white, so that no line runs through it.
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.annotate(text, point, (0, 10), textcoords="offset points", ha="center", color=_INK, bbox=behind)


def _label(axes: Any, place: float, text: str, colour: str, *, row: int, left: bool) -> None:
    """Write above the plot, in one of two rows, on one side of a place, or on the other where there is no room."""
    start, end = axes.get_xlim()
    share = (place - start) / (end - start)
    side = "right" if share > 0.75 or (left and share > 0.25) else "left"
    axes.annotate(
        text,
        (place, 1.0),
        (0, 4 + 15 * row),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha=side,
        color=colour,
        fontweight="bold",
        parse_math=False,
    )


def _alternative(distribution: Distribution, threshold: float | None, language: Language) -> str:
    text = language.text(
        "Histogram of the counts of %(n)s individuals; their median is %(median)s.",
        n=language.number(distribution.n, 0),
        median=language.number(distribution.median),
    )
    if threshold is None:
        return text
    return f"{text} " + language.text(
        "%(share)s are below the threshold %(threshold)s.",
        share=language.per_cent(distribution.share_below(threshold)),
        threshold=language.number(threshold, 12),
    )


def _cumulative_alternative(distribution: Distribution, language: Language) -> str:
    return language.text(
        "Cumulative share of the individuals over the count: 5 % have %(twentieth)s or fewer, 25 % %(quarter)s or "
        "fewer, 50 % %(half)s or fewer, 75 % %(most)s or fewer.",
        twentieth=language.number(distribution.percentile(5), 0),
        quarter=language.number(distribution.percentile(25), 0),
        half=language.number(distribution.percentile(50), 0),
        most=language.number(distribution.percentile(75), 0),
    )


def _svg(name: str, draw: Callable[[Any], None], alternative: str, language: Language) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": f"local-cloaking-{name}",  # ids of its own in each figure, the same each time
        "font.family": ["DejaVu Sans"],  # comes with matplotlib: places never depend on the machine's fonts
        "font.size": 12,
        "axes.edgecolor": _MUTED,
        "axes.labelcolor": _MUTED,
        "xtick.color": _MUTED,
        "ytick.color": _MUTED,
        "text.parse_math": False,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72))
        FigureCanvasSVG(figure)
        figure.subplots_adjust(left=0.115, right=0.985, top=0.85, bottom=0.175)
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color=_GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.yaxis.set_major_formatter(lambda value, _: language.number(value, 1))
        draw(axes)
        target = io.StringIO()
        nothing_told = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(target, format="svg", metadata=nothing_told, transparent=True)
    drawing = _FONT.sub("", _GROUP_ID.sub("<g>", _CLUTTER.sub("", target.getvalue())))
    inner = drawing[drawing.index(">", drawing.index("<svg")) + 1 :]
    label = escape(alternative, quote=True)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{inner.strip()}'
    )
