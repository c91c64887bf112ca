"""What Octopize's platform writes, told by the names of its files.

For a table ``patients`` it writes ``patients.unshuffled-0.csv``, whose rows are those of the originals in their
order, ``patients.shuffled-0.csv``, the same rows in random order, and the coordinates of both tables in its
projected space, columns ``Dim. 1``, ``Dim. 2``, ...: ``patients.projections.original-0.csv`` and
``patients.projections.avatars-0.csv``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from local_cloaking.errors import InputError
from local_cloaking.sources import source_of

if TYPE_CHECKING:
    from local_cloaking.measuring import Inputs

_NAME = re.compile(
    r"(?P<table>.+)\.(?P<kind>shuffled|unshuffled|projections\.(original|avatars))(?P<number>-[0-9]+\.csv)"
)


def kind_of_file(name: str) -> str | None:
    """Tell which of the platform's files a name is: ``unshuffled``, ``shuffled``, coordinates; None for another.

    Examples
    --------
    >>> kind_of_file("patients.unshuffled-0.csv"), kind_of_file("patients.csv")
    ('unshuffled', None)
    """
    found = _NAME.fullmatch(name)
    return None if found is None else found["kind"]


def is_unshuffled(name: str) -> bool:
    """Tell whether a name is that of the platform's avatars in the order of the originals."""
    return kind_of_file(name) == "unshuffled"


def with_coordinates(inputs: Inputs) -> Inputs:
    """Return the tables to measure, with the coordinates that the platform wrote beside the avatars.

    Anything that says itself in which space it is to be measured stays as it is.

    Raises
    ------
    InputError
        If the platform's shuffled table is to be measured, or its coordinates as a table.

    Examples
    --------
    >>> from local_cloaking.measuring import Inputs
    >>> with_coordinates(Inputs("patients.csv", "patients.shuffled-0.csv"))
    Traceback (most recent call last):
    ...
    local_cloaking.errors.InputError: patients.shuffled-0.csv: it is the platform's shuffled table: ...
    """
    avatars = source_of(inputs.avatars)
    for place in (source_of(inputs.originals), avatars):
        _refuse_other_kinds(place)
    name = _NAME.fullmatch(_name(avatars))
    spaces = (inputs.projection, inputs.original_coordinates, inputs.avatar_coordinates)
    if name is None or any(space is not None for space in spaces):
        return inputs
    return replace(
        inputs,
        original_coordinates=_beside(avatars, f"{name['table']}.projections.original{name['number']}"),
        avatar_coordinates=_beside(avatars, f"{name['table']}.projections.avatars{name['number']}"),
    )


def _name(place: Any) -> str:
    return str(getattr(place, "name", ""))


def _refuse_other_kinds(place: Any) -> None:
    kind = kind_of_file(_name(place))
    if kind == "shuffled":
        raise InputError(
            "it is the platform's shuffled table: nothing says which avatar belongs to which original",
            remedy="measure the table whose name says unshuffled, and publish the shuffled one",
            file=_name(place),
        )
    if kind is not None and kind != "unshuffled":
        raise InputError(
            "it holds coordinates, and no table of individuals",
            remedy="name the table whose name says unshuffled; its coordinates are found beside it",
            file=_name(place),
        )


def _beside(place: Any, name: str) -> Any:
    found = place.with_name(name)
    if not found.exists():
        raise FileNotFoundError(
            f"{name} is not there: the platform writes it, and it has to lie beside {_name(place)}; to measure in "
            "a space that is fitted anew, rename the avatars"
        )
    return found
