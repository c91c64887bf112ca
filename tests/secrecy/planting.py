"""Values that nobody could mistake for another's, planted in every kind of column and of secret.

None of them is the median or the commonest level of its column, nor a level of a group that is large enough to be
named: what is documented to be shown is never planted.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pandas as pd

N = 300
#: Individuals of the one planted level of a group: fewer than a group that is named.
RARE = 7

#: Of people: levels of a category, some with signs that each encoding writes otherwise.
NAMES = (
    "Ottoline Quixwood",
    "Zéphyrine d'Hautecœur",
    "Ξανθίππη Ζαχαρίου",
    'Barnaby "Bo" O’Trigger & Söhne <jr>',
    "Wxyz\\Umbrage; née, Krč",
)
#: In a column by which groups are reported, of too few individuals each to be named.
SMALL_GROUP = "Saint-Quirin-en-Vexaigne"
#: In a column of which every cell is somebody's.
MAIL = "quenby.thistlewaite-{:03d}@quagmyre.example"
KEY, AVATAR_KEY = "ZQK741-QUORN-{:05d}XV", "VWJ358-BRIAR-{:05d}QH"
#: Larger than the seconds of a minute: a log's moments are to the microsecond.
NUMBERS = (842.648159371, 804.917305267, 869.370481252)
WHOLE = (701293645, 698847153)
DATES = (dt.date(1873, 11, 29), dt.date(1869, 10, 27))
#: A category that no original has, by which avatars are refused.
UNSEEN = "Perpetua Wrexinghame"
#: A cell that is nothing of what its column holds.
STRAY = "Mlle Fantaisie Kvasnička"
PASSWORD = "hush/p@ss:Wörd-4471"
S3_SECRET = "unmistakable-S3-secret-wJq8/k2"
WEBHOOK_TOKEN = "T0K-9f27-quorn-8812"

TEXTS = (*NAMES, SMALL_GROUP, UNSEEN, STRAY)
#: What all of a kind begin with: each key, each address.
BEGINNINGS = (KEY[:12], AVATAR_KEY[:12], MAIL[:19], "quagmyre.example")
SECRETS = (PASSWORD, S3_SECRET, WEBHOOK_TOKEN)


def originals() -> pd.DataFrame:
    """A table with every kind of column, and the planted values in some of its cells."""
    rng = np.random.default_rng(5)
    latent = rng.normal(size=(N, 3))
    frame = pd.DataFrame(
        {
            "file": [KEY.format(i) for i in range(N)],
            "mail": [MAIL.format(i) for i in range(N)],
            "weight": (70 + 9 * latent[:, 0]).round(1),
            "dose": (830 + 40 * latent[:, 1]).round(2),
            "pay": (700_000 + 3000 * latent[:, 2]).round().astype(int) * 1000,
            "born": pd.Timestamp("1850-01-01") + pd.to_timedelta((3000 * latent[:, 0]).round() + 9000, unit="D"),
            "work": np.where(latent[:, 1] > 0, "nurse", "baker"),
            "town": np.where(latent[:, 2] > 0, "Arles", "Nantes"),
            "smokes": latent[:, 0] + latent[:, 1] > 0,
        }
    )
    for place, name in enumerate(NAMES):
        frame.loc[[10 + place, 110 + place, 210 + place], "work"] = name
    frame.loc[20 : 20 + RARE - 1, "town"] = SMALL_GROUP
    frame.loc[range(40, 40 + len(NUMBERS)), "dose"] = NUMBERS
    frame.loc[range(50, 50 + len(WHOLE)), "pay"] = WHOLE
    frame.loc[range(60, 60 + len(DATES)), "born"] = [pd.Timestamp(day) for day in DATES]
    frame.loc[70:75, "weight"] = np.nan
    frame.loc[80:83, "work"] = None
    return frame


def avatars_of(table: pd.DataFrame) -> pd.DataFrame:
    """Avatars, in another order, with the planted values in some of their cells, too."""
    from local_cloaking.avatarisation import avatarise_in_space

    made = avatarise_in_space(table.drop(columns="mail"), k=20, ncp=3, seed=1, key="file").avatars
    made = made.assign(weight=made["weight"].round(1), dose=made["dose"].round(2), born=made["born"].dt.floor("D"))
    for name in ("work", "town", "dose", "pay", "born"):
        values = table[name].isin([*NAMES, SMALL_GROUP, *NUMBERS, *WHOLE, *map(pd.Timestamp, DATES)])
        made.loc[values, name] = table.loc[values, name]
    return made.sample(frac=1, random_state=3)


def write_all(folder: Path) -> None:
    """Write the tables, each as a run is given it, and those that are refused."""
    table = originals()
    made = avatars_of(table)
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "originals.csv", index=False)
    made.to_csv(folder / "avatars.csv", index=False)
    table.to_parquet(folder / "originals.parquet", index=False)
    made.to_parquet(folder / "avatars.parquet", index=False)
    renamed = made.assign(file=made["file"].str.replace(KEY[:12], AVATAR_KEY[:12], regex=False))
    renamed.rename(columns={"file": "avatar"}).to_csv(folder / "renamed.csv", index=False)
    pd.DataFrame({"file": made["file"], "avatar": renamed["file"]}).to_csv(folder / "pairing.csv", index=False)
    shuffled = made.assign(file=made["file"].sample(frac=1, random_state=4).to_numpy())
    shuffled.to_csv(folder / "shuffled.csv", index=False)
    numbers = table[["weight", "dose", "pay"]].fillna(70.0).astype(float)
    numbers.to_csv(folder / "original-coordinates.csv", index=False)
    (numbers + 0.25).to_csv(folder / "avatar-coordinates.csv", index=False)
    _write_refused(table, made.reset_index(drop=True), folder)


def _write_refused(table: pd.DataFrame, made: pd.DataFrame, folder: Path) -> None:
    changed = {
        "unseen": made.assign(work=[UNSEEN, *made["work"][1:]]),
        "stray": made.assign(dose=[STRAY, *made["dose"][1:]]),
        "infinite": made.assign(dose=[-np.inf, *made["dose"][1:]]),
        "twice": made.assign(file=[made["file"][1], *made["file"][1:]]),
        "keyless": made.assign(file=[None, *made["file"][1:]]),
        "fewer": made[1:],
        "strangers": made.assign(file=made["file"].str.replace("XV", "YY", regex=False)),
        "columns": made.drop(columns="town"),
        "names": made.assign(pay=NAMES[0]),
        "too-large": made.assign(pay=[9_007_199_254_740_995, *made["pay"][1:]]),
    }
    for name, frame in changed.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    text = (folder / "avatars.csv").read_text()
    lines = text.splitlines()
    broken = {
        "ragged": "\n".join([*lines[:5], f"{lines[5]},{STRAY}", *lines[6:]]),
        "quoted": "\n".join([*lines[:5], f'"{STRAY},{lines[5]}', *lines[6:]]),
        "two-dates": text.replace(str(DATES[0]), "29/11/1873"),
        "no-date": text.replace(str(DATES[0]), f"le {DATES[0]:%d}, {STRAY}"),
        "empty": "",
        "header": lines[0],
    }
    for name, content in broken.items():
        (folder / f"{name}.csv").write_text(content)
    (folder / "not-utf8.csv").write_bytes(text.replace("nurse", "né\udce9").encode("utf-8", "surrogateescape"))
    whole = (folder / "avatars.parquet").read_bytes()
    (folder / "damaged.parquet").write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])
    (folder / "cut.parquet").write_bytes(whole[:-200])
    made.assign(work=[[name] for name in made["work"]]).to_parquet(folder / "nested.parquet", index=False)
    (folder / "projection.json").write_text(
        json.dumps({"format": "local-cloaking-famd", "version": NAMES[0], "columns": [STRAY]})
    )
