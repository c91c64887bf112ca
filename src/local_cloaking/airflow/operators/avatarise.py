"""The operator that makes avatars by the published algorithm."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

from local_cloaking.airflow.arguments import (
    TableArgument,
    csv_options,
    location,
    names,
    refuse_same_place,
    table,
    text,
    whole,
)
from local_cloaking.airflow.runs import refusals_are_final

if TYPE_CHECKING:
    from airflow.sdk import Context


class AvatariseOperator(BaseOperator):
    """Makes one avatar per original, by the published algorithm: for demonstrations and for choosing k.

    Writes the avatars and the projection they were made in. Returns a JSON object: ``avatars`` and
    ``projection`` (where they lie), ``avatars_sha256``, ``n``, ``k``, ``ncp``, ``seed``.

    :param originals: What names the originals; see ``docs/sources.md``. (templated)
    :param avatars: Path or URI to write, ending in .csv, .csv.gz or .parquet. (templated)
    :param projection: Path or URI to write; by default beside the avatars, ending in .projection.json. (templated)
    :param k: Neighbours that an avatar draws on. (templated)
    :param ncp: Components in which neighbours are sought. (templated)
    :param seed: Seed of the random weights; None for other avatars each time. (templated)
    :param key: Column that pairs the tables: kept in the avatars, not projected. (templated)
    :param categorical: Columns to treat as categories, a list or ``A,B,C``. (templated)
    :param drop: Columns to leave out, a list or ``A,B,C``. (templated)
    :param separator: CSV: what separates cells; found out by default. (templated)
    :param decimal: CSV: ``.`` or ``,``; found out by default. (templated)
    :param encoding: CSV: as ``utf-8`` or ``latin-1``; found out by default. (templated)
    """

    template_fields: Sequence[str] = (
        "originals",
        "avatars",
        "projection",
        "k",
        "ncp",
        "seed",
        "key",
        "categorical",
        "drop",
        "separator",
        "decimal",
        "encoding",
    )
    ui_color = "#e6f2e6"

    originals = TableArgument()

    def __init__(
        self,
        *,
        originals: Any,
        avatars: Any,
        projection: Any = None,
        k: Any = 20,
        ncp: Any = 5,
        seed: Any = None,
        key: Any = None,
        categorical: Any = None,
        drop: Any = None,
        separator: Any = None,
        decimal: Any = None,
        encoding: Any = None,
        **kwargs: Any,
    ) -> None:
        # So that `task.output["avatars"]` reads one entry.
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.originals = originals
        self.avatars = avatars
        self.projection = projection
        self.k = k
        self.ncp = ncp
        self.seed = seed
        self.key = key
        self.categorical = categorical
        self.drop = drop
        self.separator = separator
        self.decimal = decimal
        self.encoding = encoding

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Avatarise, write both files, return where they lie."""
        with refusals_are_final():
            return self._avatarise()

    def _avatarise(self) -> dict[str, Any]:
        from local_cloaking.audit.store import write_whole
        from local_cloaking.measuring import avatarise_file

        avatars = location(self.avatars, "avatars")
        projection = location(self.projection or f"{avatars}.projection.json", "projection")
        originals = table(self.originals, "originals")
        refuse_same_place(originals=originals, avatars=avatars, projection=projection)
        k, ncp, seed = whole(self.k, "k"), whole(self.ncp, "ncp"), whole(self.seed, "seed")
        made = avatarise_file(
            originals,
            avatars.name,
            k=k,
            ncp=ncp,
            seed=seed,
            key=text(self.key, "key"),
            categorical=names(self.categorical, "categorical"),
            drop=names(self.drop, "drop"),
            csv=csv_options(self.separator, self.decimal, self.encoding),
        )
        write_whole(projection, made.projection, private=True, replace=True)
        write_whole(avatars, made.avatars, private=True, replace=True)
        return {
            "avatars": str(avatars),
            "projection": str(projection),
            "avatars_sha256": hashlib.sha256(made.avatars).hexdigest(),
            "n": made.n,
            "k": k,
            "ncp": ncp,
            "seed": seed,
        }
