"""From tables to a measure: what the command line and the operators share.

Reads the inputs, measures, and returns the result with everything that the record says of the inputs.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from local_cloaking.audit.record import measure_entries
from local_cloaking.errors import InputError
from local_cloaking.limits import MIN_GROUP_SIZE, REMEDIATION_SHARE
from local_cloaking.octopize import is_unshuffled, with_coordinates
from local_cloaking.sources import refuse_rows_without_order
from local_cloaking.tables.files import AS_FOUND, CsvOptions

if TYPE_CHECKING:
    import pandas as pd

    from local_cloaking.metric import LocalCloaking
    from local_cloaking.projection import FAMD
    from local_cloaking.tables import Table
    from local_cloaking.threads import Progress

#: Tables whose rows may be paired by their order.
_ROW_BY_ROW = ("originals", "avatars", "original_coordinates", "avatar_coordinates")


@dataclass(frozen=True)
class Inputs:
    """Which tables to measure, and how to read them. Each is named as `local_cloaking.sources` says.

    Attributes
    ----------
    originals, avatars
        The two tables.
    projection
        The JSON file that the avatarisation wrote.
    pairing
        A table of two columns: keys of originals, keys of avatars.
    original_coordinates, avatar_coordinates
        Tables of bare coordinates, one column per component, row by row as the tables.
    csv
        How the CSV files are written.
    """

    originals: Any
    avatars: Any
    projection: Any = None
    pairing: Any = None
    original_coordinates: Any = None
    avatar_coordinates: Any = None
    csv: CsvOptions = AS_FOUND


@dataclass(frozen=True)
class Measured:
    """A result, its entries for the record (plain JSON values), and, where asked for, the weakly protected.

    ``weakest`` is the file of `weakest_individuals`: the only thing here that names people.
    """

    result: LocalCloaking = field(repr=False)
    entries: dict[str, Any] = field(repr=False)
    weakest: bytes | None = field(default=None, repr=False)


def measure_files(
    inputs: Inputs,
    *,
    ncp: Any = None,
    key: str | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    groups: Sequence[str] = (),
    min_group_size: Any = MIN_GROUP_SIZE,
    data_set: str | None = None,
    k: int | None = None,
    zone: tzinfo | None = None,
    ladder: bool = True,
    remediation: bool = False,
    progress: Progress | None = None,
) -> Measured:
    """Read the files and measure Local Cloaking.

    Parameters
    ----------
    inputs
        The files.
    ncp, key, categorical, drop, groups, min_group_size, ladder
        As in `local_cloaking.local_cloaking`.
    data_set
        A name for the record.
    k
        The k of the avatarisation, where known: for the record and the remedy.
    zone
        Time zone of the record's times; None for the machine's.
    remediation
        Whether to list the weakly protected individuals, too.
    progress
        Called now and then while originals are counted, with how many are done and how many there are.

    Raises
    ------
    InputError
        If an input is refused.
    OSError
        If a file cannot be read.
    """
    from local_cloaking.avatarisation import checked_k
    from local_cloaking.metric import local_cloaking

    started = time.perf_counter()
    inputs = with_coordinates(inputs)
    read = _read(inputs, key, categorical, drop, groups)
    if k is not None:
        checked_k(k, len(read.originals))
    result = local_cloaking(
        read.originals,
        read.avatars,
        ncp=ncp,
        key=key,
        categorical=categorical,
        projection=read.projection,
        pairing=read.pairing,
        drop=drop,
        coordinates=read.coordinates,
        ladder=ladder,
        groups=groups,
        min_group_size=min_group_size,
        progress=progress,
    )
    parameters = parameters_of(
        inputs.csv,
        ncp=ncp,
        key=key,
        categorical=categorical,
        drop=drop,
        groups=groups,
        min_group_size=min_group_size,
    )
    return Measured(
        result,
        entries_of(result, read.described, parameters, started, data_set=data_set, k=k, zone=zone),
        weakest_individuals(read.originals, _keys_of_originals(key, read.pairing), result)
        if remediation
        else None,
    )


def parameters_of(
    csv: CsvOptions,
    *,
    ncp: Any,
    key: str | None,
    categorical: Collection[str],
    drop: Collection[str],
    groups: Sequence[str] = (),
    min_group_size: Any = MIN_GROUP_SIZE,
) -> dict[str, Any]:
    """Return what was asked for, as plain JSON values: with the same files, the record can be made again."""
    from local_cloaking.groups import checked_min_group_size
    from local_cloaking.projection import checked_ncp

    return {
        "ncp": None if ncp is None else checked_ncp(ncp),
        "key": key,
        "categorical": sorted(str(name) for name in categorical),
        "drop": sorted(str(name) for name in drop),
        "groups": [str(name) for name in groups],
        "min_group_size": checked_min_group_size(min_group_size),
        **asdict(csv),
    }


def measure_inputs(inputs: Inputs, *, scheduler: str | None = None, **options: Any) -> Measured:
    """Measure here, or on the workers of a Dask scheduler where one is given.

    Parameters
    ----------
    inputs
        As in `measure_files`, or in `local_cloaking.distributed.measure_partitions`.
    scheduler
        Address of the scheduler, or None.
    options
        As in `measure_files`.
    """
    if scheduler is None:
        return measure_files(inputs, **options)
    from local_cloaking.distributed import measure_partitions

    return measure_partitions(inputs, scheduler=scheduler, **options)


def entries_of(
    result: LocalCloaking,
    described: dict[str, dict[str, Any]],
    parameters: dict[str, Any],
    started: float,
    *,
    data_set: str | None,
    k: int | None,
    zone: tzinfo | None,
) -> dict[str, Any]:
    """Return the entries of the record for a result, and for the inputs that it was measured on.

    Parameters
    ----------
    result
        What was measured.
    described
        The inputs, by their names, as plain JSON values.
    parameters
        `parameters_of` the measure.
    started
        ``time.perf_counter()`` at the start.
    data_set, k, zone
        As in `measure_files`.
    """
    from local_cloaking.avatarisation import checked_k

    return {
        **measure_entries(result),
        "data_set": data_set,
        "k": None if k is None else checked_k(k, result.n),
        "parameters": parameters,
        "inputs": described,
        "avatars_sha256": described["avatars"]["sha256"],
        "measured_at": now(zone),
        "duration_seconds": round(time.perf_counter() - started, 3),
        "run": None,
    }


@dataclass(frozen=True)
class _Read:
    originals: pd.DataFrame
    avatars: pd.DataFrame
    pairing: pd.DataFrame | None
    projection: FAMD | None
    coordinates: tuple[pd.DataFrame, pd.DataFrame] | None
    described: dict[str, dict[str, Any]]


def _read(
    inputs: Inputs, key: str | None, categorical: Collection[str], drop: Collection[str], groups: Collection[str]
) -> _Read:
    """Read all tables, and describe each for the record."""
    from local_cloaking.tables import read_pair, read_table, rows_sha256_of

    dialect = asdict(inputs.csv)
    pairing = None if inputs.pairing is None else read_table(inputs.pairing, text_columns=None, **dialect)
    keys = _key_columns(key, pairing)
    refuse_rows_without_order(
        {name: source for name, source in vars(inputs).items() if name in _ROW_BY_ROW},
        paired_by_key=bool(keys) and inputs.original_coordinates is None,
    )
    originals, avatars = read_pair(
        inputs.originals,
        inputs.avatars,
        text_columns=keys,
        categorical=categorical,
        leave_out=set(drop) - set(groups),
        **dialect,
    )
    tables = {"originals": originals, "avatars": avatars}
    if pairing is not None:
        tables["pairing"] = pairing
    coordinates = _read_coordinates(inputs)
    if coordinates is not None:
        tables["original_coordinates"], tables["avatar_coordinates"] = coordinates
    described = {name: asdict(table.source) for name, table in tables.items() if table.source is not None}
    if is_unshuffled(described["avatars"]["name"]):
        # What leaves is the same rows in another order: by this hash `require_passed` knows them.
        described["avatars"]["rows_sha256"] = rows_sha256_of(avatars.frame)
    projection = None
    if inputs.projection is not None:
        projection, described["projection"] = read_projection(inputs.projection)
    return _Read(
        originals=originals.frame,
        avatars=avatars.frame,
        pairing=None if pairing is None else pairing.frame,
        projection=projection,
        coordinates=None if coordinates is None else (coordinates[0].frame, coordinates[1].frame),
        described=described,
    )


def now(zone: tzinfo | None = None) -> str:
    """Return the present moment in ISO 8601, with its offset, to the second.

    Examples
    --------
    >>> from datetime import timezone
    >>> now(timezone.utc).endswith("+00:00")
    True
    """
    return datetime.now(UTC).astimezone(zone).isoformat(timespec="seconds")


def _key_columns(key: str | None, pairing: Table | None) -> tuple[str, ...]:
    if key is not None:
        return (key,)
    return tuple(str(name) for name in pairing.frame.columns) if pairing else ()


def _keys_of_originals(key: str | None, pairing: pd.DataFrame | None) -> str | None:
    return str(pairing.columns[0]) if key is None and pairing is not None else key


def weakest_individuals(originals: pd.DataFrame, key: str | None, result: LocalCloaking) -> bytes:
    """List the individuals with the lowest counts, for the team inside the trusted environment.

    They are the `REMEDIATION_SHARE` of the lowest counts, with all who have the last one's, and everybody with a
    count of 0. Keep the list where the originals are: it names people.

    Parameters
    ----------
    originals
        The table as it was read.
    key
        The column of their keys; None to name them by the number of their row, from 1 on.
    result
        What was measured on it, counts in the order of the table.

    Returns
    -------
    A CSV file of two columns, the key (or ``row``) and ``count``, the lowest counts first; without rows where
    nothing was counted, or the pairs cannot be relied on.

    Examples
    --------
    >>> import pandas as pd
    >>> from local_cloaking import local_cloaking
    >>> table = pd.DataFrame({"id": [f"patient {i}" for i in range(60)], "x": [i * i for i in range(60)]})
    >>> result = local_cloaking(table, table, key="id", ncp=1)
    >>> weakest_individuals(table, "id", result).decode().splitlines()[:2]
    ['id,count', 'patient 0,0']
    """
    import numpy as np
    import pandas as pd

    from local_cloaking.tables.values import as_key

    counts = result.counts[:0] if result.looks_shuffled else result.counts
    last = np.sort(counts)[: math.ceil(REMEDIATION_SHARE * len(counts))][-1:]
    rows = np.flatnonzero(counts <= np.append(last, 0).max()) if len(counts) else np.zeros(0, np.int64)
    names = pd.Series(rows + 1) if key is None else as_key(originals[key].iloc[rows], key)
    listed = pd.DataFrame({"row" if key is None else key: names.to_numpy(), "count": counts[rows]})
    return listed.sort_values("count", kind="stable").to_csv(index=False, lineterminator="\n").encode()


def read_projection(source: Any) -> tuple[FAMD, dict[str, Any]]:
    """Read the projection that an avatarisation wrote, and describe its file for the record."""
    from local_cloaking.projection import FAMD
    from local_cloaking.tables import read_bytes

    content = read_bytes(source)
    try:
        text = content.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            "the projection is not a text file", remedy="hand over the JSON file that the avatarisation wrote"
        ) from error
    described = {"name": content.name, "size": content.size, "sha256": content.sha256}
    try:
        return FAMD.from_json(text), described
    except InputError as error:
        raise error.in_file(content.name) from error


def _read_coordinates(inputs: Inputs) -> tuple[Table, Table] | None:
    given = (inputs.original_coordinates, inputs.avatar_coordinates)
    if given == (None, None):
        return None
    if None in given:
        raise InputError(
            "coordinates are given for one table only",
            remedy="give them for originals and avatars, or for neither",
        )
    from local_cloaking.tables import read_table

    one, other = (_in_their_order(read_table(source, **asdict(inputs.csv))) for source in given)
    for table in (one, other):
        _refuse_other_than_numbers(table.frame)
    return one, other


def _in_their_order(table: Table) -> Table:
    """Return components that bear their number, ``Dim. 1``, in the order of their numbers."""
    numbers = [re.fullmatch(r"Dim\. ?([0-9]+)", str(name)) for name in table.frame.columns]
    known = [int(number[1]) for number in numbers if number is not None]
    if len(known) < len(numbers):
        return table
    if sorted(known) != list(range(1, len(known) + 1)):
        raise InputError(
            "the components of the coordinates are not numbered from 1 on",
            remedy="give all of them, each once",
            file=table.source.name if table.source else None,
        )
    return replace(table, frame=table.frame.iloc[:, [known.index(number) for number in sorted(known)]])


def _refuse_other_than_numbers(frame: pd.DataFrame) -> None:
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiu" or frame[name].isna().any():
            raise InputError(
                "a coordinate is missing or no number",
                column=str(name),
                rows=int(frame[name].isna().sum()),
                remedy="give tables of numbers, one column per component",
            )


@dataclass(frozen=True)
class AvatarisedFile:
    """The bytes of the two files that an avatarisation writes, and how many avatars they hold."""

    avatars: bytes = field(repr=False)
    projection: bytes = field(repr=False)
    n: int


def avatarise_file(
    originals: Any,
    name: str,
    *,
    k: Any = 20,
    ncp: Any = 5,
    seed: int | None = None,
    key: str | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    csv: CsvOptions = AS_FOUND,
) -> AvatarisedFile:
    """Read originals and make avatars, written as the originals are.

    Parameters
    ----------
    originals
        The table; see `local_cloaking.sources`.
    name
        Name of the avatars' file, which says its format.
    k, ncp, seed, key, categorical
        As in `local_cloaking.avatarisation.avatarise_in_space`.
    drop
        Columns of the originals to leave out.
    csv
        How a CSV file is written.

    Raises
    ------
    InputError
        If an input is refused.
    OSError
        If the file cannot be read.
    """
    from local_cloaking.avatarisation import avatarise_in_space
    from local_cloaking.projection import checked_ncp
    from local_cloaking.tables import checked_format, read_table, table_bytes
    from local_cloaking.tables.columns import without

    checked_format(name)
    refuse_rows_without_order({"originals": originals}, paired_by_key=key is not None)
    table = read_table(
        originals,
        text_columns=_key_columns(key, None),
        categorical=categorical,
        leave_out=drop,
        hash_all=False,
        **asdict(csv),
    )
    made = avatarise_in_space(
        without(table.frame, drop),
        k=k,
        ncp=checked_ncp(ncp),
        seed=seed,
        categorical=categorical,
        key=key,
    )
    written = table_bytes(
        made.avatars,
        name,
        separator=table.source.separator if table.source else None,
        decimal=table.source.decimal if table.source else None,
        encoding=table.source.encoding if table.source else None,
    )
    return AvatarisedFile(written, made.projection.to_json().encode(), len(made.avatars))
