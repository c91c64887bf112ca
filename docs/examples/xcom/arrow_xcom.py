"""An XCom backend that hands Arrow tables from task to task: as files that only their owner reads.

[core] xcom_backend = arrow_xcom.ArrowXCom, with this file where Airflow's processes find it (PYTHONPATH).
"""

import os
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
from airflow.sdk.bases.xcom import BaseXCom

#: Shared by all workers, inside the trusted environment; delete what is older than your runs.
FOLDER = Path(os.environ.get("ARROW_XCOM_FOLDER", "/data/xcom"))


class ArrowXCom(BaseXCom):
    """Tables lie in the folder; Airflow's database holds where."""

    @staticmethod
    def serialize_value(value, **where):
        """Write a table beside Airflow's database."""
        if isinstance(value, pa.Table):
            path = FOLDER / f"{uuid.uuid4()}.arrow"
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
                feather.write_feather(value, stream)
            value = {"arrow_table": str(path)}
        return BaseXCom.serialize_value(value, **where)

    @staticmethod
    def deserialize_value(result):
        """Read it again."""
        value = BaseXCom.deserialize_value(result)
        if isinstance(value, dict) and set(value) == {"arrow_table"}:
            return feather.read_table(value["arrow_table"])
        return value
