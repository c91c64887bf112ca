"""The operator that measures Local Cloaking."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

from local_cloaking.airflow.arguments import (
    TableArgument,
    csv_options,
    names,
    optional_location,
    optional_table,
    refuse_same_place,
    table,
    text,
    whole,
)
from local_cloaking.airflow.runs import evidence_folder, refusals_are_final, run_of, zone_of
from local_cloaking.limits import MIN_GROUP_SIZE

if TYPE_CHECKING:
    from airflow.sdk import Context

#: What the XCom holds of the measure; all of it stands in the counts file too.
_XCOM_ENTRIES = (
    "local_cloaking",
    "strict_median",
    "hidden_rate",
    "n",
    "ncp",
    "k",
    "reason",
    "warnings",
    "space",
    "avatars_table",
    "data_set",
    "avatars_sha256",
)


class LocalCloakingOperator(BaseOperator):
    """Measures Local Cloaking of avatars, and pushes the figure to XCom.

    Returns a JSON object: ``local_cloaking`` (null, with ``reason``, where the avatars look shuffled), ``n``,
    ``hidden_rate``, ``ncp``, ``k``, ``counts`` (where the sorted counts lie), ``counts_sha256``,
    ``avatars_sha256``, ``warnings``. It judges nothing: that is `LocalCloakingCheckOperator`'s.

    A table is named by a path, a URI, a `SqlTable` or its text form, or is a DataFrame or Arrow table of an
    earlier task; see ``docs/sources.md``.

    :param originals: What names the originals. (templated)
    :param avatars: What names the avatars. (templated)
    :param ncp: Components; by default the projection's, else 5. (templated)
    :param key: Column in both tables that pairs them; without it, row order does. (templated)
    :param pairing: What names a table of two columns, keys of originals and of their avatars. (templated)
    :param categorical: Columns to treat as categories, a list or ``A,B,C``. (templated)
    :param drop: Columns to leave out, a list or ``A,B,C``. (templated)
    :param projection: Path or URI of the projection that the avatarisation wrote. (templated)
    :param original_coordinates: Bare coordinates of the originals, instead of a projection. (templated)
    :param avatar_coordinates: Bare coordinates of the avatars. (templated)
    :param groups: Columns whose groups are reported, each among all avatars, a list or ``A,B,C``. (templated)
    :param min_group_size: Groups of fewer individuals are merged or withheld, at least 5. (templated)
    :param remediation: Path or URI to write the keys of the individuals with the lowest counts to, for its owner
        alone: it names people. Off by default. (templated)
    :param k: The k of the avatarisation, for the record and the remedy. (templated)
    :param data_set: A name for the record; by default the DAG's. (templated)
    :param audit_path: Where counts are kept; by default ``[local_cloaking] audit_path``. (templated)
    :param separator: CSV: what separates cells; found out by default. (templated)
    :param decimal: CSV: ``.`` or ``,``; found out by default. (templated)
    :param encoding: CSV: as ``utf-8`` or ``latin-1``; found out by default. (templated)
    :param dask_scheduler: Address of a Dask scheduler, as ``tcp://host:8786``, whose workers measure: originals
        and avatars are then folders of Parquet files that the workers reach, too. (templated)
    """

    template_fields: Sequence[str] = (
        "originals",
        "avatars",
        "ncp",
        "key",
        "pairing",
        "categorical",
        "drop",
        "projection",
        "original_coordinates",
        "avatar_coordinates",
        "groups",
        "min_group_size",
        "remediation",
        "k",
        "data_set",
        "audit_path",
        "separator",
        "decimal",
        "encoding",
        "dask_scheduler",
    )
    ui_color = "#dfeef7"

    originals = TableArgument()
    avatars = TableArgument()
    pairing = TableArgument()
    original_coordinates = TableArgument()
    avatar_coordinates = TableArgument()

    def __init__(
        self,
        *,
        originals: Any,
        avatars: Any,
        ncp: Any = None,
        key: Any = None,
        pairing: Any = None,
        categorical: Any = None,
        drop: Any = None,
        projection: Any = None,
        original_coordinates: Any = None,
        avatar_coordinates: Any = None,
        groups: Any = None,
        min_group_size: Any = MIN_GROUP_SIZE,
        remediation: Any = None,
        k: Any = None,
        data_set: Any = None,
        audit_path: Any = None,
        separator: Any = None,
        decimal: Any = None,
        encoding: Any = None,
        dask_scheduler: Any = None,
        **kwargs: Any,
    ) -> None:
        # So that `task.output["local_cloaking"]` reads one entry.
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.originals = originals
        self.avatars = avatars
        self.ncp = ncp
        self.key = key
        self.pairing = pairing
        self.categorical = categorical
        self.drop = drop
        self.projection = projection
        self.original_coordinates = original_coordinates
        self.avatar_coordinates = avatar_coordinates
        self.groups = groups
        self.min_group_size = min_group_size
        self.remediation = remediation
        self.k = k
        self.data_set = data_set
        self.audit_path = audit_path
        self.separator = separator
        self.decimal = decimal
        self.encoding = encoding
        self.dask_scheduler = dask_scheduler

    def execute(self, context: Context) -> dict[str, Any]:
        """Measure, keep the counts, return the figure."""
        with refusals_are_final():
            return self._measure(context)

    def _measure(self, context: Context) -> dict[str, Any]:
        from local_cloaking.audit.evidence import Evidence
        from local_cloaking.audit.store import write_whole
        from local_cloaking.measuring import measure_inputs
        from local_cloaking.progress import LoggedProgress

        run = run_of(context)
        inputs, remediation = self._inputs(), optional_location(self.remediation, "remediation")
        for name, source in vars(inputs).items():
            if remediation is not None and source is not None:
                refuse_same_place(**{name: source}, remediation=remediation)
        measured = measure_inputs(
            inputs,
            scheduler=text(self.dask_scheduler, "dask_scheduler"),
            ncp=whole(self.ncp, "ncp"),
            key=text(self.key, "key"),
            categorical=names(self.categorical, "categorical"),
            drop=names(self.drop, "drop"),
            groups=names(self.groups, "groups"),
            min_group_size=whole(self.min_group_size, "min_group_size"),
            remediation=remediation is not None,
            data_set=text(self.data_set, "data_set") or run["dag_id"],
            k=whole(self.k, "k"),
            zone=zone_of(context),
            progress=LoggedProgress(lambda line: self.log.info("%s", line)),
        )
        entries = {**measured.entries, "run": run}
        evidence = Evidence.of(measured.result.counts, measured.result.strict_counts, entries)
        content = evidence.to_bytes()
        path = evidence_folder(self.audit_path, context) / "counts.parquet"
        if remediation is not None and measured.weakest is not None:
            write_whole(remediation, measured.weakest, private=True, replace=True)
        write_whole(path, content)
        self.log.info(
            "Local Cloaking %s of %d individuals, ncp %d",
            entries["local_cloaking"],
            entries["n"],
            entries["ncp"],
        )
        for warning in entries["warnings"]:
            self.log.warning("%s", warning)
        return {
            **{name: entries[name] for name in _XCOM_ENTRIES},
            "counts": str(path),
            "counts_sha256": hashlib.sha256(content).hexdigest(),
        }

    def _inputs(self) -> Any:
        from local_cloaking.measuring import Inputs

        return Inputs(
            originals=table(self.originals, "originals"),
            avatars=table(self.avatars, "avatars"),
            projection=optional_location(self.projection, "projection"),
            pairing=optional_table(self.pairing, "pairing"),
            original_coordinates=optional_table(self.original_coordinates, "original_coordinates"),
            avatar_coordinates=optional_table(self.avatar_coordinates, "avatar_coordinates"),
            csv=csv_options(self.separator, self.decimal, self.encoding),
        )
