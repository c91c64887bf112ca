"""The languages of the report: texts, numbers, dates and the sentences of a record.

English is the source: a text is its own key. Each other language is one gettext catalogue, ``locale/<code>.po``,
read as it is. A record holds its reasons, warnings and remedies as finished English sentences; the catalogues hold
their templates in the context ``sentence``, by which a finished sentence is recognised and said again.
"""

from __future__ import annotations

import gettext
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, localcontext
from functools import lru_cache
from importlib.resources import files

from babel import Locale
from babel.dates import format_date
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.units import format_unit

from local_cloaking.errors import InputError

SOURCE = "en"
#: The context of the catalogue that holds the templates of a record's sentences.
SENTENCES = "sentence"

_FOLDER = files("local_cloaking.audit") / "locale"
# Dates with the day first, as in the rest of Europe.
_LOCALES = {SOURCE: "en_GB"}
_UNITS = ("byte", "kilobyte", "megabyte", "gigabyte", "terabyte")

#: More decimals than anybody gives a threshold: it is never shown rounded.
_ALL_DIGITS = 12
#: More than the largest float has, and decimals behind it.
_MOST_DIGITS = 400

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
# What stands in a finished sentence: numbers, and names of columns as Python writes them. Both are matched whole,
# so that no name, whatever it holds, is taken for the words around it, or makes the search long.
_NUMBER = r"(?>[+-]?(?:\d++(?:\.\d++)?+(?:e[+-]?\d++)?+|inf|nan)%?+)"
_NAME = r"""(?>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
#: The placeholder that holds sentences of its own, joined by commas.
_PARTS = "parts"
#: What stands in the others is one number or one name, except here.
_GAPS = {_PARTS: ".+?", "columns": f"{_NAME}(?:, {_NAME})*"}


def languages() -> tuple[str, ...]:
    """Return the codes of the languages that a report can be written in, English first.

    Examples
    --------
    >>> languages()
    ('en', 'fr')
    """
    catalogues = sorted(
        entry.name.removesuffix(".po") for entry in _FOLDER.iterdir() if entry.name.endswith(".po")
    )
    return (SOURCE, *catalogues)


def language_of(code: str | None) -> Language:
    """Return a language by its code.

    Parameters
    ----------
    code
        As ``fr``, ``FR``, ``fr_FR`` or ``fr-FR``; None for English.

    Raises
    ------
    InputError
        If there is no catalogue of that language.

    Examples
    --------
    >>> language_of("fr-FR").number(1.5)
    '1,5'
    """
    short = SOURCE if code is None else re.split("[-_]", str(code).strip().lower())[0]
    if short not in languages():
        raise InputError(
            "the report cannot be written in this language",
            remedy=f"give one of these languages: {', '.join(languages())}",
        )
    return _language(short)


def read_catalogue(code: str) -> Catalog:
    """Read the catalogue of a language other than English.

    Examples
    --------
    >>> read_catalogue("fr").locale.language
    'fr'
    """
    with (_FOLDER / f"{code}.po").open("rb") as file:
        return read_po(file, locale=code)


@lru_cache
def _language(code: str) -> Language:
    locale = Locale.parse(_LOCALES.get(code, code))
    if code == SOURCE:
        return Language(code, locale, gettext.NullTranslations(), ())
    catalogue = read_catalogue(code)
    # The standard library looks up and chooses plural forms; it reads the compiled form only.
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return Language(code, locale, gettext.GNUTranslations(compiled), tuple(_templates(catalogue)))


class _UnknownSentenceError(Exception):
    """No template of the catalogue fits."""


@dataclass(frozen=True)
class _Template:
    """A sentence with gaps, and how a finished one is recognised."""

    pattern: re.Pattern[str]
    translation: str


def _templates(catalogue: Catalog) -> Iterator[_Template]:
    messages = [message for message in catalogue if message.context == SENTENCES and message.string]
    # Where several fit, the one with the most words of its own says most.
    messages.sort(key=lambda message: len(_PLACEHOLDER.sub("", message.id)), reverse=True)
    for message in messages:
        yield _Template(_pattern(message.id), message.string)


def _pattern(template: str) -> re.Pattern[str]:
    # Literal text and names of placeholders take turns.
    pieces = _PLACEHOLDER.split(template)
    gaps = [f"(?P<{name}>{_GAPS.get(name, f'{_NUMBER}|{_NAME}')})" for name in pieces[1::2]]
    literals = [re.escape(text) for text in pieces[0::2]]
    body = "".join(literal + gap for literal, gap in zip(literals, [*gaps, ""], strict=True))
    return re.compile(rf"{body}(?=[;,] |\Z)")


def _filled(message: str, values: Mapping[str, str]) -> str:
    # Not by the % operator: a text may hold signs of per cent, and so may what is filled in.
    return _PLACEHOLDER.sub(lambda gap: str(values[gap[1]]), message)


@dataclass(frozen=True)
class Language:
    """A language, and how it says texts, numbers and dates; made by `language_of`.

    Attributes
    ----------
    code
        As ``en`` or ``fr``.
    locale
        How numbers and dates are written.
    translations
        The texts of the catalogue.
    templates
        The sentences of a record that the catalogue knows.

    Examples
    --------
    >>> french = language_of("fr")
    >>> french.sentence("Local Cloaking 4.5 is below the threshold 5")
    'le Local Cloaking (4,5) est inférieur au seuil (5)'
    """

    code: str
    locale: Locale = field(repr=False)
    translations: gettext.NullTranslations = field(repr=False)
    templates: tuple[_Template, ...] = field(repr=False)

    def text(self, message: str, **values: str) -> str:
        """Return a text in this language; one without a translation stays English.

        Parameters
        ----------
        message
            The English text, with gaps as ``%(name)s``. A sign of per cent stands for itself.
        values
            What fills the gaps, in this language already.

        Examples
        --------
        >>> language_of(None).text("%(share)s of %(whole)s", share="5%", whole="all")
        '5% of all'
        """
        # Nothing is the key of a catalogue's header.
        return _filled(self.translations.gettext(message) if message else "", values)

    def many(self, one: str, more: str, number: float, **values: str) -> str:
        """Return a text in the plural form that a number asks for; the number itself fills ``%(number)s``.

        Of a number with decimals, English takes the plural, and other languages what their whole part takes.

        Examples
        --------
        >>> language_of("en").many("%(number)s avatar", "%(number)s avatars", 2139)
        '2,139 avatars'
        >>> language_of("en").many("%(number)s avatar", "%(number)s avatars", 1.5)
        '1.5 avatars'
        """
        counted = math.ceil(number) if self.code == SOURCE else math.floor(number)
        message = self.translations.ngettext(one, more, counted)
        return _filled(message, {"number": self.number(number), **values})

    def sentence(self, text: str) -> str:
        """Return a finished English sentence of a record, or several joined by ``; ``, in this language.

        Numbers are written as in this language, names of columns as they are. A text that holds anything unknown
        stays English as a whole.

        Examples
        --------
        >>> language_of("fr").sentence("something new")
        'something new'
        """
        try:
            return self._said(text, "; ", self.text("; "))
        except _UnknownSentenceError:
            return text

    def _said(self, text: str, separator: str, joint: str) -> str:
        """Say again the sentences that a separator joins, with another joint."""
        sentences, start = [], 0
        # Sentence by sentence from the left, not cut at the separator: names may hold it, and so do templates.
        while start <= len(text):
            said, end = self._first_said(text, start)
            if end < len(text) and not text.startswith(separator, end):
                raise _UnknownSentenceError
            sentences.append(said)
            start = end + len(separator)
        return joint.join(sentences)

    def _first_said(self, text: str, start: int) -> tuple[str, int]:
        """Say again the sentence that starts somewhere in a text, and tell where it ends."""
        for template in self.templates:
            found = template.pattern.match(text, start)
            if found:
                values = {name: self._value_said(name, value) for name, value in found.groupdict().items()}
                return _filled(template.translation, values), found.end()
        raise _UnknownSentenceError

    def _value_said(self, name: str, value: str) -> str:
        if name == _PARTS:
            return self._said(value, ", ", ", ")
        if not re.fullmatch(_NUMBER, value):
            return value
        bare = value.removesuffix("%")
        if not math.isfinite(float(bare)):
            return value
        written = self._written(Decimal(bare))
        return self._with_per_cent(written) if bare != value else written

    def _written(self, value: Decimal) -> str:
        """Write a number with exactly the decimals that it has."""
        exponent = value.as_tuple().exponent
        decimals = max(0, -exponent) if isinstance(exponent, int) else 0
        return self._formatted(value, "#,##0" + ("." + "0" * decimals if decimals else ""))

    def _formatted(self, value: Decimal, pattern: str) -> str:
        # Babel rounds within the context, whose 28 digits are fewer than a threshold may have.
        with localcontext(prec=_MOST_DIGITS):
            return str(format_decimal(value, format=pattern, locale=self.locale))

    def number(self, value: float | None, digits: int = 2) -> str:
        """Write a number with at most so many decimals.

        Examples
        --------
        >>> language_of("en").number(1234.5), language_of("en").number(None)
        ('1,234.5', 'not known')
        """
        if value is None or not math.isfinite(value):
            return self.text("not known")
        rounded = Decimal(str(round(value, digits)))
        pattern = "#,##0" + ("." + "#" * digits if digits else "")
        # Nothing below nothing: a small negative number is not written as -0.
        return self._formatted(rounded or Decimal(0), pattern)

    def exact(self, value: float | None) -> str:
        """Write a number as it is, as a threshold is: with more decimals than anybody gives one.

        Examples
        --------
        >>> language_of("en").exact(5.125), language_of("en").exact(5.0)
        ('5.125', '5')
        """
        return self.number(value, _ALL_DIGITS)

    def per_cent(self, value: float | None, digits: int = 2) -> str:
        r"""Write a share that is in per cent already.

        Examples
        --------
        >>> language_of("en").per_cent(93.083)
        '93.08\xa0%'
        """
        if value is None or not math.isfinite(value):
            return self.text("not known")
        return self._with_per_cent(self.number(value, digits))

    def _with_per_cent(self, number: str) -> str:
        return self.text("%(number)s\N{NO-BREAK SPACE}%", number=number)

    def moment(self, iso: str | None) -> str:
        """Write a moment as a person would, with the offset that it was given with.

        Parameters
        ----------
        iso
            ISO 8601; what is no moment is returned as it is.

        Examples
        --------
        >>> language_of("en").moment("2026-11-30T07:12:03+01:00")
        '30 November 2026, 07:12:03 +01:00'
        """
        if iso is None:
            return self.text("not known")
        try:
            moment = datetime.fromisoformat(iso)
        except ValueError:
            return iso
        day = format_date(moment.date(), "long", locale=self.locale)
        offset = moment.isoformat(timespec="seconds")[19:]
        return f"{day}, {moment:%H:%M:%S} {offset}".strip()

    def bytes(self, size: int) -> str:
        r"""Write the size of a file.

        Examples
        --------
        >>> language_of("en").bytes(1_234_567)
        '1.2\xa0MB'
        """
        power = 0
        while round(size / 1000**power, 1) >= 1000 and power < len(_UNITS) - 1:
            power += 1
        written = format_unit(
            self._rounded(size / 1000**power),
            f"digital-{_UNITS[power]}",
            length="short" if power else "long",
            format="#,##0.#",
            locale=self.locale,
        )
        return str(written).replace(" ", "\N{NO-BREAK SPACE}")

    def _rounded(self, value: float) -> Decimal:
        # Whole numbers as such: their plural form is another one than that of decimals.
        rounded = Decimal(str(round(value, 1)))
        return rounded.to_integral() if rounded == rounded.to_integral() else rounded
