"""How much memory it takes to read a table of a database: prints the highest of a process that does nothing else.

    PGPASSWORD=... python scripts/sql_memory.py --url postgresql+psycopg2://user@host/database

makes a table of a million rows and 25 columns there (15 numbers, 10 of text), reads it as `local-cloaking measure`
does, in a process of its own, prints the figures, and drops the table.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

NAME = "local_cloaking_memory"
NUMBERS, TEXTS = 15, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--url", required=True, help="an SQLAlchemy URL of a PostgreSQL database, without password"
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--read", action="store_true", help="only read the table, in this process")
    options = parser.parse_args()
    if options.read:
        read(options.url)
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(options.url)
    numbers = [f"random() * {n} AS n{n}" for n in range(NUMBERS)]
    texts = [f"'level ' || mod(i, {3 + n})::text AS t{n}" for n in range(TEXTS)]
    columns = ", ".join([*numbers, *texts])
    try:
        with engine.begin() as connection:
            # Of this script's own names, and a whole number.
            made = f"CREATE TABLE {NAME} AS SELECT {columns} FROM generate_series(1, {options.rows}) i"  # nosec B608
            connection.exec_driver_sql(made)
        subprocess.run([sys.executable, __file__, "--url", options.url, "--read"], check=True)
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {NAME}")


def read(url: str) -> None:
    from local_cloaking import SqlTable
    from local_cloaking.tables import read_table

    before, started = peak(), time.perf_counter()
    table = read_table(SqlTable(url=url, table=NAME))
    rows, columns = table.frame.shape
    took = time.perf_counter() - started
    print(f"{rows} x {columns}: {took:.0f} s, at most {peak()} MB, of which {before} MB before reading")


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()
