"""Hopeless counting is stopped by a sample; nothing is ever spared that could pass or warn."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import local_cloaking
from local_cloaking.audit.evidence import Evidence
from local_cloaking.audit.record import build_record, measure_entries, verdict_again
from local_cloaking.cli import app
from local_cloaking.gate import GateError, judge
from local_cloaking.limits import EARLY_STOP_ROWS, EARLY_STOP_SAMPLES, MAX_FAR_SHARE
from local_cloaking.metric import LocalCloaking
from local_cloaking.pairing import PairingEvidence

N = EARLY_STOP_ROWS


def tables(shuffled: float, n: int = N) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Originals, and avatars near them, of which a share is shuffled."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 3))
    y = x + rng.normal(scale=0.05, size=x.shape)
    some = rng.permutation(n)[: round(shuffled * n)]
    y[some] = y[np.roll(some, 1)]
    names = ["a", "b", "c"]
    return pd.DataFrame(x, columns=names), pd.DataFrame(y, columns=names)


def measured(shuffled: float, n: int = N) -> LocalCloaking:
    return local_cloaking(*tables(shuffled, n), ncp=3)


@pytest.mark.parametrize(("shuffled", "sample"), [(1.0, EARLY_STOP_SAMPLES[0]), (0.45, EARLY_STOP_SAMPLES[1])])
def test_shuffled_avatars_are_told_by_a_sample(shuffled: float, sample: int) -> None:
    result = measured(shuffled)
    assert result.evidence.sample == sample
    assert result.n == N
    assert len(result.counts) == len(result.strict_counts) == 0
    assert np.isnan([result.median, result.strict_median, result.hidden_rate]).all()
    assert result.looks_shuffled
    assert f"by a sample of {sample} originals" in result.reason
    assert result.evidence.far_share == pytest.approx(shuffled / 2, abs=0.1)


@pytest.mark.parametrize("shuffled", [0.0, 0.1, 0.2, 0.31])
def test_what_a_sample_leaves_open_is_counted(shuffled: float) -> None:
    result = measured(shuffled)
    assert result.evidence.sample is None
    assert len(result.counts) == N
    assert (result.reason is None) == (shuffled < 0.3)


def test_fewer_individuals_are_always_counted() -> None:
    result = measured(1.0, N - 1)
    assert len(result.counts) == N - 1
    assert result.evidence.sample is None
    assert result.looks_shuffled


def test_individuals_all_alike_are_counted() -> None:
    same = pd.DataFrame({"a": np.ones(N)})
    assert local_cloaking(same, same).median == N - 1


def test_no_variance_and_a_sample_that_is_hopeless_leave_no_figure() -> None:
    originals, avatars = tables(0.0)
    one_place = np.zeros((N, 2))
    apart = np.zeros((N, 2))
    apart[: N // 2] = np.random.default_rng(2).normal(size=(N // 2, 2)) + 50
    result = local_cloaking(originals, avatars, ncp=2, coordinates=(one_place, apart))
    entries = measure_entries(result)
    assert result.reason is not None
    assert entries["local_cloaking"] is None or entries["local_cloaking"] >= 0
    Evidence.of(result.counts, result.strict_counts, entries).to_bytes()  # what is no number would not be written
    assert judge(result.counts, individuals=N, threshold=1, reason=result.reason).verdict == "not_assessable"


def test_nothing_is_compared_with_a_figure_that_was_not_measured() -> None:
    originals, avatars = tables(1.0)
    sex = np.tile(["f", "m"], N // 2)
    result = local_cloaking(originals.assign(sex=sex), avatars.assign(sex=sex), ncp=3)
    assert result.findings.carried_over is not None
    assert len(result.counts) == 0
    assert not [warning for warning in result.warnings if "carried over" in warning]


def test_the_sample_is_the_same_every_time() -> None:
    assert measured(1.0).evidence == measured(1.0).evidence


@pytest.mark.parametrize("sample", EARLY_STOP_SAMPLES)
def test_hopeless_only_far_beyond_the_bound(sample: int) -> None:
    margin = 6 * 0.5 / np.sqrt(sample)
    assert not PairingEvidence(50.0, MAX_FAR_SHARE + margin, 0.0, N, sample).is_hopeless
    assert PairingEvidence(50.0, MAX_FAR_SHARE + margin + 0.01, 0.0, N, sample).is_hopeless
    assert PairingEvidence(3.99, 0.0, 0.0, N, sample).is_hopeless
    assert not PairingEvidence(4.0, 0.0, 0.0, N, sample).is_hopeless
    assert not PairingEvidence(None, 0.0, 0.0, N, sample).is_hopeless


def test_the_gate_judges_no_counts_only_with_a_reason() -> None:
    none = np.zeros(0, np.int64)
    judgement = judge(none, individuals=N, threshold=5, reason="they look shuffled")
    assert (judgement.verdict, judgement.reason) == ("not_assessable", "they look shuffled")
    assert judgement.local_cloaking is None
    assert judgement.expectations == ()
    with pytest.raises(GateError):
        judge(none, individuals=N, threshold=5)


def test_record_and_evidence_say_that_nothing_was_counted() -> None:
    result = measured(1.0)
    entries = measure_entries(result)
    assert (entries["local_cloaking"], entries["strict_median"], entries["hidden_rate"]) == (None, None, None)
    assert (entries["n"], entries["pairing_evidence"]["sample"]) == (N, EARLY_STOP_SAMPLES[0])
    content = Evidence.of(result.counts, result.strict_counts, entries).to_bytes()
    evidence = Evidence.from_bytes(content, hashlib.sha256(content).hexdigest())
    judgement = judge(evidence.closer, individuals=N, threshold=5, reason=evidence.measure["reason"])
    record = build_record(evidence.measure, evidence.closer, judgement)
    assert record["distribution"] == {"count": [], "individuals": []}
    assert verdict_again(record) == record["verdict"] == "not_assessable"
    # Who takes out the reason leaves no counts behind that could pass.
    assert verdict_again({**record, "unreliable_because": None}) == "not_assessable"


def test_command_line_tells_shuffled_avatars(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in ("originals", "avatars")]
    for path, frame in zip(paths, tables(1.0), strict=True):
        frame.to_parquet(path, index=False)
    out = tmp_path / "record.json"
    done = CliRunner().invoke(app, ["measure", *paths, "--ncp", "3", "--threshold", "5", "--json", str(out)])
    assert done.exit_code == 1
    assert "not_assessable" in done.stdout
    assert "not known" in done.stdout
    record = json.loads(out.read_bytes())
    schema = Path("src/local_cloaking/audit/record.schema.json")
    jsonschema.validate(record, json.loads(schema.read_text()))
    assert record["verdict"] == verdict_again(record) == "not_assessable"
