"""The same measure over partitioned Parquet data sets, on Dask (extra ``dask``).

The workers read the partitions; the client gets sums, histograms and samples. The counts are those of one machine,
integer for integer.
"""

from __future__ import annotations

from local_cloaking.distributed.measure import measure_partitions

__all__ = ["measure_partitions"]
