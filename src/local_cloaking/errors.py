"""What the software refuses, and how it says so.

A refusal carries the data of the failure; the text is made from that data. No message holds a value of
a cell: values may be personal.
"""

from __future__ import annotations

from typing import Any


class LocalCloakingError(Exception):
    """Whatever this package refuses or cannot do derives from this error."""


class InputError(LocalCloakingError):
    """Input that is not measured, since its figure would mean nothing or the wrong thing.

    Parameters
    ----------
    problem
        What is wrong, in one sentence without a full stop; it holds no value of a cell.
    remedy
        What the user can do, in one sentence without a full stop.
    column
        The column concerned, or None where the fault is not in one column.
    rows
        How many rows are concerned, or None where rows cannot be counted.
    file
        Name of the file concerned, without its folder, or None.

    Examples
    --------
    >>> print(InputError("2 avatars have a category that no original has", column="arm", rows=2,
    ...                  remedy="map it to a category of the originals"))
    column 'arm': 2 avatars have a category that no original has; map it to a category of the originals
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        column: str | None = None,
        rows: int | None = None,
        file: str | None = None,
    ) -> None:
        self.problem = problem
        self.remedy = remedy
        self.column = column
        self.rows = rows
        self.file = file
        super().__init__(problem)

    def __str__(self) -> str:
        file = f"{self.file}: " if self.file is not None else ""
        column = f"column {_short(self.column)}: " if self.column is not None else ""
        return f"{file}{column}{self.problem}; {self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments: without this, an error raised in another process cannot be rebuilt.
        return (_rebuild, (type(self), self.problem, self._entries()))

    def in_file(self, name: str) -> InputError:
        """Return the same refusal, naming the file."""
        return InputError(self.problem, **{**self._entries(), "file": self.file or name})

    def with_problem(self, problem: str) -> InputError:
        """Return the same refusal, saying otherwise what is wrong."""
        return InputError(problem, **self._entries())

    def _entries(self) -> dict[str, Any]:
        return {"remedy": self.remedy, "column": self.column, "rows": self.rows, "file": self.file}


class UnforeseenError(Exception):
    """What this package did not foresee, told without the message, which may quote a cell.

    Where it happened is said by the traceback, which holds no value.
    """


def without_message(error: Exception) -> UnforeseenError:
    """Return an error in the place of one that this package did not foresee, with its traceback.

    Examples
    --------
    >>> raise without_message(ValueError("could not convert string to float: 'Mme Dupont'"))
    Traceback (most recent call last):
        ...
    local_cloaking.errors.UnforeseenError: ValueError, unforeseen; what it says is not shown: it may quote a cell
    """
    told = UnforeseenError(f"{type(error).__name__}, unforeseen; what it says is not shown: it may quote a cell")
    return told.with_traceback(error.__traceback__)


def _short(name: str) -> str:
    # On one line, whatever the name holds; a message is no place for a name of a thousand characters.
    return repr(name if len(name) <= 80 else f"{name[:77]}...")


def _rebuild(kind: type[InputError], problem: str, entries: dict[str, Any]) -> InputError:
    return kind(problem, **entries)
