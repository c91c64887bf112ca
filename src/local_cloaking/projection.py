r"""The projected space: FAMD, exactly, as a scikit-learn estimator.

Numbers are centred and divided by their standard deviation; each category becomes an indicator, centred and
divided by the square root of its share; a principal component analysis of the result gives the space. On
numbers alone this is PCA; on categories alone it is MCA up to one constant factor, which no count depends on.

The fit needs only counts, means and cross-products, so the table of indicators is never built. A row's
coordinates are sums over its columns in their order, each term made from that row alone: a row projects to
the same bits alone and in its table.

References
----------
Pagès, J. (2004). Analyse factorielle de données mixtes. Revue de statistique appliquée 52(4), 93-111.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import asdict
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from local_cloaking.errors import InputError
from local_cloaking.limits import (
    EQUAL_EIGENVALUES,
    LADDER_COMPONENTS,
    RANK_TOLERANCE,
    SAME_FIT,
)
from local_cloaking.tables.cells import CellSummary, summarise_cells
from local_cloaking.tables.columns import Column, EncodedColumn, Words, decode, encode, learn_columns
from local_cloaking.tables.values import Kind
from local_cloaking.threads import in_threads
from local_cloaking.whole import whole_number

Floats = NDArray[np.float64]


FILE_FORMAT = "local-cloaking/projection"
FILE_VERSION = 1

_CHUNK_ROWS = 65_536
_KINDS = frozenset(get_args(Kind)) - {"missing"}
#: Two means of the same numbers, summed in another order, agree to this share.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)
_ITS_OWN = "hand over the projection of the avatarisation that made these avatars"


class FAMD(TransformerMixin, BaseEstimator):
    """Factor analysis of mixed data.

    Parameters
    ----------
    n_components
        How many components to keep, 1 to the table's rank.
    categorical
        Columns to treat as categories whatever their type; text, truth values and pandas categoricals
        always are.

    Attributes
    ----------
    columns_
        Role, categories and fill of each column.
    shares_
        For each column, its mean and standard deviation (number), or the shares of its levels (category).
    components_
        Orthonormal directions, shape (n_components, d), d the columns of the scaled table.
    eigenvalues_
        Variance along each direction, shape (n_components,), falling.
    total_variance_
        Variance of the scaled table, so that ``eigenvalues_ / total_variance_`` is the share explained.
    n_rows_
        How many rows it was fitted on.
    warnings_
        What a user should know about the columns.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 40, 50, 60], "arm": ["a", "b", "b", "a"]})
    >>> FAMD(n_components=2).fit_transform(table).shape
    (4, 2)
    """

    def __init__(self, n_components: int = 5, categorical: Collection[str] | None = None) -> None:
        self.n_components = n_components
        self.categorical = categorical

    #: All eigenvalues, and the first directions; None where the projection was read from a file.
    _axes: tuple[Floats, Floats] | None = None

    def fit(self, X: pd.DataFrame, y: Any = None) -> FAMD:  # noqa: ARG002
        """Fit on the originals: shape (n, columns).

        Raises
        ------
        InputError
            If a column has no usable role, ``n_components`` is not a number from 1 to the rank of the
            table, or the eigenvalue after the last component kept is as large as that component's.
        """
        self.fit_encoded(X)
        return self

    def fit_encoded(self, X: pd.DataFrame) -> list[EncodedColumn]:
        """Fit as `fit` does, and return the table as it was encoded for that."""
        checked_ncp(self.n_components)
        words: Words = {}
        columns, warnings = learn_columns(X, self.categorical or (), words)
        encoded = encode(X, columns, "originals", words=words)
        shares = [shares_of(summarise_cells(cells)) for cells in encoded]
        self.fit_sums(columns, warnings, shares, cross_products(encoded, shares), len(X))
        return encoded

    def fit_sums(
        self,
        columns: Sequence[Column],
        warnings: Sequence[str],
        shares: Sequence[Floats],
        products: Floats,
        rows: int,
    ) -> FAMD:
        """Fit on what the originals add up to, wherever their rows lie.

        Parameters
        ----------
        columns, warnings
            What was learnt of the columns.
        shares
            `shares_of` each column.
        products
            The `cross_products` of all rows: those of parts of the table, added up.
        rows
            Number of originals.

        Raises
        ------
        InputError
            As in `fit`, but for columns without a role.
        """
        ncp = checked_ncp(self.n_components)
        self.columns_, self.warnings_, self.n_rows_ = tuple(columns), list(warnings), rows
        self.shares_ = list(shares)
        covariance = covariance_of(products, self.columns_, self.shares_, rows)
        self.total_variance_ = float(np.trace(covariance))
        eigenvalues, vectors = _principal_axes(covariance)
        self._axes = eigenvalues, vectors[:, : max(ncp, LADDER_COMPONENTS)].T.copy()
        return self._cut(ncp)

    def with_components(self, n_components: int) -> FAMD:
        """Return the same fit with another number of components: up to 10, or as many as were asked for.

        Raises
        ------
        InputError
            As in `fit`.
        ValueError
            If this one was read from a file, or more components are asked for than were kept.

        Examples
        --------
        >>> table = pd.DataFrame({"age": [30, 40, 50, 70], "arm": ["a", "b", "b", "a"]})
        >>> FAMD(n_components=1).fit(table).with_components(2).transform(table).shape
        (4, 2)
        """
        if self._axes is None:
            raise ValueError("read from a file, which holds no other components")
        if n_components > max(LADDER_COMPONENTS, len(self._axes[1])):
            raise ValueError(f"only {len(self._axes[1])} components were kept")
        other = copy(self)
        other.n_components = n_components
        return other._cut(n_components)

    def cuts(self) -> list[bool]:
        """Tell which numbers of components, 1 to 10 or to the rank of the table, determine a space.

        Examples
        --------
        >>> table = pd.DataFrame({"age": [30, 40, 50, 70], "arm": ["a", "b", "b", "a"]})
        >>> FAMD(n_components=1).fit(table).cuts()
        [True, True]
        """
        eigenvalues = cast("tuple[Floats, Floats]", self._axes)[0]
        if eigenvalues[0] <= 0:
            return [True]
        return [bool(possible) for possible in _cuts(eigenvalues)[:LADDER_COMPONENTS]]

    def _cut(self, ncp: int) -> FAMD:
        eigenvalues, directions = cast("tuple[Floats, Floats]", self._axes)
        _check_cut(eigenvalues, ncp)
        self.eigenvalues_ = np.maximum(eigenvalues[:ncp], 0.0)
        self.components_ = directions[:ncp].copy()
        self._derive()
        return self

    def transform(self, X: pd.DataFrame) -> Floats:
        """Project rows, also supplementary ones such as avatars.

        Returns
        -------
        float64 array of shape (rows, n_components).

        Raises
        ------
        InputError
            If the columns are not those of the fit, or a category is unknown.
        """
        check_is_fitted(self, "components_")
        return self.project(encode(X, self.columns_, "table"))

    def project(self, encoded: Sequence[EncodedColumn]) -> Floats:
        """Project an encoded table; see `transform`."""
        coordinates = np.zeros((len(encoded[0].values), len(self.components_)))

        def fill(rows: slice) -> None:
            part = coordinates[rows]
            # Element by element, column after column: no sum depends on the other rows, as it does in a
            # matrix product.
            for cells, contribution, shares in zip(encoded, self._contributions, self.shares_, strict=True):
                if cells.column.role == "category":
                    part += contribution[cells.values[rows]]
                    continue
                scaled = _scaled(cells.values[rows], shares)[:, None]
                # Of numbers at the end of the floats the sum is infinite or none at all; see `_scaled`.
                with np.errstate(over="ignore", invalid="ignore"):
                    part += scaled * contribution

        in_threads(fill, len(coordinates), _CHUNK_ROWS)
        return coordinates

    def inverse_transform(self, X: ArrayLike) -> pd.DataFrame:
        """Map coordinates back to a table: numbers as they come, the category with the largest indicator.

        Parameters
        ----------
        X
            Coordinates, shape (rows, n_components).

        Returns
        -------
        A table with the fit's columns, in order, with the types of the originals.
        """
        check_is_fitted(self, "components_")
        scaled = np.asarray(X, dtype=np.float64) @ self.components_
        series, start = {}, 0
        for column, shares in zip(self.columns_, self.shares_, strict=True):
            block = scaled[:, start : start + column.width]
            start += column.width
            if column.role == "category":
                cells: NDArray[Any] = np.argmax(block * np.sqrt(shares) + shares, axis=1)
            else:
                mean, deviation = shares
                cells = block[:, 0] * deviation + mean
            series[column.name] = decode(column, cells)
        return pd.DataFrame(series)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Name the components: ``famd0``, ``famd1``, ..."""
        return np.array([f"famd{i}" for i in range(len(self.components_))], dtype=object)

    def to_json(self) -> str:
        """Write the fitted projection as JSON: exact, and nothing in it is ever executed.

        It holds the names of the categories, some of which may be rare: keep it where the originals are.
        """
        check_is_fitted(self, "components_")
        return json.dumps(
            {
                "format": FILE_FORMAT,
                "version": FILE_VERSION,
                "n_components": len(self.components_),
                "n_rows": self.n_rows_,
                "columns": [asdict(column) for column in self.columns_],
                "shares": [shares.tolist() for shares in self.shares_],
                "components": self.components_.tolist(),
                "eigenvalues": self.eigenvalues_.tolist(),
                "total_variance": self.total_variance_,
            },
            allow_nan=False,
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> FAMD:
        """Read a projection written by `to_json`.

        Raises
        ------
        InputError
            If the text is not such a projection, or its directions are not orthonormal (of a table without
            variance, they may also be zeros).
        """
        try:
            content = json.loads(text)
            if (content["format"], content["version"]) != (FILE_FORMAT, FILE_VERSION):
                raise ValueError("format")  # noqa: TRY301
            famd = cls(content["n_components"])
            famd.columns_ = tuple(_column(entries) for entries in content["columns"])
            famd.warnings_ = []
            famd.n_rows_ = int(content["n_rows"])
            famd.shares_ = [np.array(shares, dtype=np.float64) for shares in content["shares"]]
            famd.components_ = np.array(content["components"], dtype=np.float64)
            famd.eigenvalues_ = np.array(content["eigenvalues"], dtype=np.float64)
            famd.total_variance_ = float(content["total_variance"])
            famd._check_parts()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(
                "the projection is not one that this version wrote",
                remedy="hand over the JSON file that the avatarisation wrote, unchanged",
            ) from error
        famd._derive()
        return famd

    def _check_parts(self) -> None:
        widths = [column.width for column in self.columns_]
        sizes = [2 if column.role == "number" else column.width for column in self.columns_]
        numbers = [self.components_, self.eigenvalues_, np.array(self.total_variance_), *self.shares_]
        angles = self.components_ @ self.components_.T
        orthonormal = np.allclose(angles, np.eye(len(angles)), atol=1e-8)
        if (
            self.components_.shape != (self.n_components, sum(widths))
            or self.eigenvalues_.shape != (self.n_components,)
            or [shares.shape for shares in self.shares_] != [(size,) for size in sizes]
            or not all(np.isfinite(values).all() for values in numbers)
            or not all(_is_usable(*pair) for pair in zip(self.columns_, self.shares_, strict=True))
            or (self.eigenvalues_ < 0).any()
            or self.total_variance_ < 0
            or not (orthonormal or (self.total_variance_ == 0 and not self.components_.any()))
        ):
            raise ValueError("parts")

    def _derive(self) -> None:
        self.n_features_in_ = len(self.columns_)
        self.feature_names_in_ = np.array([column.name for column in self.columns_], dtype=object)
        self._contributions, start = [], 0
        for column, shares in zip(self.columns_, self.shares_, strict=True):
            directions = self.components_[:, start : start + column.width].T
            start += column.width
            self._contributions.append(
                directions[0].copy() if column.role == "number" else _level_coordinates(directions, shares)
            )


def checked_ncp(ncp: Any) -> int:
    """Return the number of components as an int.

    Raises
    ------
    InputError
        If it is not a whole number of at least 1.

    Examples
    --------
    >>> checked_ncp("5")
    5
    """
    number = whole_number(ncp)
    if number is None or number < 1:
        raise InputError("`ncp` is not a whole number of at least 1", remedy="give the number of components")
    return number


def check_same_space(projection: FAMD, fitted: FAMD) -> None:
    """Refuse a projection handed over that is not the one fitted on the same originals.

    Parameters
    ----------
    projection
        The projection handed over.
    fitted
        One fitted on the originals, with as many components as are used, or more.

    Raises
    ------
    InputError
        If columns, fills, means, spreads, shares, eigenvalues or directions differ by more than rounding:
        distances measured there would not be those between these originals and their avatars.
    """
    ours = [_identity(column) for column in fitted.columns_]
    if [_identity(column) for column in projection.columns_] != ours:
        raise InputError(
            "the projection handed over was fitted on other columns or categories than these originals have",
            remedy=_ITS_OWN,
        )
    for place, column in enumerate(projection.columns_):
        like = _is_like(column, fitted.columns_[place], projection.shares_[place], fitted.shares_[place])
        if projection.n_rows_ != fitted.n_rows_ or not like:
            raise InputError(
                "the projection handed over was fitted on another table than these originals",
                column=column.name,
                remedy=_ITS_OWN,
            )
    if not (_has_the_variances(projection, fitted) and _has_the_directions(projection, fitted)):
        raise InputError(
            "the projection handed over is not the principal space of these originals", remedy=_ITS_OWN
        )


def _identity(column: Column) -> tuple[Any, ...]:
    return column.name, column.role, column.kind, column.levels, column.missing_level


def _is_like(column: Column, ours: Column, shares: Floats, our_shares: Floats) -> bool:
    # Whole numbers are of another type where a file leaves gaps among them: that alone is no other table.
    if column.dtype == ours.dtype and column.whole != ours.whole:
        return False
    if column.role == "category":
        return column.fill == ours.fill and bool((np.abs(shares - our_shares) <= SAME_FIT * our_shares).all())
    mean, deviation = (float(value) for value in our_shares)
    # By the spread, not by the mean: dates are far from zero, and a spread of some days is nothing beside
    # their mean. Of a mean as large as that, the last bits depend on the order of the sum.
    near = max(SAME_FIT * (deviation or abs(mean)), _ROUNDING * abs(mean))
    return (
        abs(shares[1] - deviation) <= SAME_FIT * deviation
        and abs(shares[0] - mean) <= near
        and abs(column.fill - ours.fill) <= near
    )


def _has_the_variances(projection: FAMD, fitted: FAMD) -> bool:
    shared = min(len(projection.components_), len(fitted.components_))
    theirs = np.append(projection.eigenvalues_[:shared], projection.total_variance_)
    ours = np.append(fitted.eigenvalues_[:shared], fitted.total_variance_)
    return bool((np.abs(theirs - ours) <= SAME_FIT * ours[0]).all())


def _has_the_directions(projection: FAMD, fitted: FAMD) -> bool:
    """Compare direction by direction, up to sign; those of equal eigenvalues, by the space they span."""
    first = float(fitted.eigenvalues_[0])
    if first <= 0:
        return True  # No variance: every coordinate is 0, whatever the directions.
    # Fitted anew, not handed over: else the file itself would say which of its directions may be mixed.
    cuts = np.flatnonzero(-np.diff(fitted.eigenvalues_) > EQUAL_EIGENVALUES * first) + 1
    ends = [*cuts.tolist(), len(fitted.components_)]
    for start, end in zip([0, *ends], ends, strict=False):
        # A projection of fewer components holds a part of them, or nothing.
        theirs = projection.components_[start:end]
        overlap = np.linalg.svd(theirs @ fitted.components_[start:end].T, compute_uv=False)
        if overlap.size and overlap.min() < 1 - SAME_FIT:
            return False
    return True


def _column(entries: dict[str, Any]) -> Column:
    known = isinstance(entries["name"], str) and isinstance(entries["dtype"], str) and entries["kind"] in _KINDS
    flags = isinstance(entries["whole"], bool) and isinstance(entries["missing_level"], bool)
    # Text would pass as a row of levels, one for each letter.
    if not (known and flags and isinstance(entries["levels"], list)):
        raise ValueError("column")
    return Column(**{**entries, "levels": tuple(entries["levels"])})


def _is_usable(column: Column, shares: Floats) -> bool:
    if column.role == "number":
        return not column.levels and not column.missing_level and math.isfinite(column.fill) and shares[1] >= 0
    distinct = len(set(column.levels)) == len(column.levels)
    known = column.role == "category" and distinct and column.fill in range(len(column.levels))
    return known and bool((shares >= 0).all())


def shares_of(summary: CellSummary) -> Floats:
    """Return the mean and standard deviation of a number, or the shares of a category's levels.

    Raises
    ------
    InputError
        If the spread of the numbers cannot be computed.
    """
    if summary.column.role == "category":
        return summary.level_counts / summary.rows
    if summary.lowest < summary.highest and not 0 < summary.deviation < math.inf:
        raise InputError(
            "its values differ by so much, or so little, that their spread cannot be computed",
            column=summary.column.name,
            rows=summary.rows,
            remedy="give it another unit, or leave it out of both tables",
        )
    return np.array([summary.mean, summary.deviation])


def _scaled(values: Floats, shares: Floats) -> Floats:
    mean, deviation = shares
    # An avatar far beyond the originals may leave the floats: counting refuses it, in words.
    with np.errstate(over="ignore"):
        return (values - mean) / deviation if deviation > 0 else np.zeros_like(values)


def _level_coordinates(directions: Floats, shares: Floats) -> Floats:
    """Return where each level puts an individual: (indicators - shares) / sqrt(shares), projected."""
    roots = np.sqrt(shares)[:, None]
    own: Floats = np.divide(directions, roots, out=np.zeros_like(directions), where=roots > 0)
    centre: Floats = (directions * roots).sum(axis=0)
    return own - centre


def cross_products(encoded: Sequence[EncodedColumn], shares: Sequence[Floats]) -> Floats:
    """Add up the products of each two columns over the rows: scaled numbers, and indicators as they are.

    The sums over parts of a table, added up, are those over the table.

    Parameters
    ----------
    encoded
        The table, or a part of it.
    shares
        `shares_of` each column of the whole table.

    Returns
    -------
    float64 array of shape (d, d), d the columns of the scaled table.
    """
    starts = _starts([cells.column for cells in encoded])
    products = np.zeros((starts[-1], starts[-1]))
    numbers = [i for i, cells in enumerate(encoded) if cells.column.role == "number"]
    categories = [i for i, cells in enumerate(encoded) if cells.column.role == "category"]
    places = starts[numbers].astype(np.int64)
    for rows in _chunks(len(encoded[0].values)):
        scaled = [_scaled(encoded[i].values[rows], shares[i]) for i in numbers]
        if scaled:
            z = np.column_stack(scaled)
            products[np.ix_(places, places)] += z.T @ z
        for i in categories:
            block = slice(starts[i], starts[i + 1])
            for place, z_column in zip(places, scaled, strict=True):
                sums = np.bincount(encoded[i].values[rows], weights=z_column, minlength=len(shares[i]))
                products[block, place] += sums
                products[place, block] = products[block, place]
    for a, i in enumerate(categories):
        for j in categories[a:]:
            together = encoded[i].values * len(shares[j]) + encoded[j].values
            counts = np.bincount(together, minlength=len(shares[i]) * len(shares[j]))
            counts = counts.reshape(len(shares[i]), len(shares[j]))
            products[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = counts
            products[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = counts.T
    return products


def covariance_of(products: Floats, columns: Sequence[Column], shares: Sequence[Floats], rows: int) -> Floats:
    """Return the covariance of the scaled table, shape (d, d): indicators are centred and scaled here.

    Parameters
    ----------
    products
        The `cross_products` of the table.
    columns, shares, rows
        Its columns, `shares_of` each of them, and the number of its rows.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 40, 50, 60], "dose": [1, 1, 2, 2]})
    >>> columns, _ = learn_columns(table)
    >>> encoded = encode(table, columns, "originals")
    >>> shares = [shares_of(summarise_cells(cells)) for cells in encoded]
    >>> covariance_of(cross_products(encoded, shares), columns, shares, 4).round(2)
    array([[1.  , 0.89],
           [0.89, 1.  ]])
    """
    starts = _starts(columns)
    covariance = products / rows
    blocks = [slice(starts[i], starts[i + 1]) for i in range(len(columns))]
    categories = [i for i, column in enumerate(columns) if column.role == "category"]
    for a, i in enumerate(categories):
        for j in categories[a:]:
            covariance[blocks[i], blocks[j]] -= np.outer(shares[i], shares[j])
            covariance[blocks[j], blocks[i]] = covariance[blocks[i], blocks[j]].T
    for i in categories:
        covariance[blocks[i]] = _over_root(covariance[blocks[i]], shares[i])
        covariance[:, blocks[i]] = _over_root(covariance[:, blocks[i]].T, shares[i]).T
    return covariance


def _starts(columns: Sequence[Column]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([column.width for column in columns])]).astype(np.int64)


def _over_root(values: Floats, shares: Floats) -> Floats:
    roots = np.sqrt(shares).reshape((-1,) + (1,) * (values.ndim - 1))
    return np.divide(values, roots, out=np.zeros_like(values), where=roots > 0)


def _principal_axes(covariance: Floats) -> tuple[Floats, Floats]:
    from scipy.linalg import eigh

    eigenvalues, vectors = eigh(covariance)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    # A direction and its opposite are equally good; choosing makes the file the same every time.
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(len(largest))] < 0, -1.0, 1.0)
    return eigenvalues, vectors * signs


def _cuts(eigenvalues: Floats) -> NDArray[np.bool_]:
    """Tell, for each number of components up to the rank, whether the space of the first ones is determined."""
    first = float(eigenvalues[0])
    rank = int(np.count_nonzero(eigenvalues > RANK_TOLERANCE * first))
    gaps = np.append(eigenvalues[: rank - 1] - eigenvalues[1:rank], first)
    possible: NDArray[np.bool_] = gaps / first >= EQUAL_EIGENVALUES
    return possible


def _check_cut(eigenvalues: Floats, ncp: int) -> None:
    if eigenvalues[0] <= 0:
        return  # No variance: every coordinate is 0, and the measure says that nothing can be told apart.
    cuts = _cuts(eigenvalues)
    possible = np.flatnonzero(cuts) + 1
    nearest = int(possible[np.abs(possible - min(ncp, len(cuts))).argmin()])
    if ncp > len(cuts):
        raise InputError(
            f"`ncp` is {ncp}, but the originals have only {len(cuts)} independent components",
            remedy=f"use ncp={nearest}",
        )
    if ncp not in possible:
        raise InputError(
            f"components {ncp} and {ncp + 1} explain equal shares of the variance, so that a cut after "
            f"{ncp} is arbitrary",
            remedy=f"use ncp={nearest}",
        )


def _chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _CHUNK_ROWS):
        yield slice(start, start + _CHUNK_ROWS)
