"""The files have the fields that docs/formats.md says."""

import json
import re
import struct

import numpy as np
import pytest
from conftest import ROOT, smooth

import ocsc

PAGE = (ROOT / "docs/formats.md").read_text("utf-8")


def fields(heading):
    """The names in backticks in the first column of the first table under a heading, or in the second of one with parts."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ") and "`" in line]
    cells = [row[1] if row[0].strip() in ("tensor", "tensors", "metadata") else row[0] for row in rows]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.fixture
def run(tmp_path, program):
    np.save(tmp_path / "x.npy", smooth(6))
    words = ["learn", "x.npy", "--filters", 4, "--size", 5, "--beta-ratio", 0.1, "--log", "run.jsonl", "--checkpoint-every", 3]
    program(*words, "--tile", "whole", "--out", "model.safetensors")
    return tmp_path


def header(path):
    """The header of a safetensors file: the names of its tensors, and its metadata."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    found = json.loads(data[8 : 8 + length])
    return found.pop("__metadata__"), set(found)


def test_models(run):
    metadata, tensors = header(run / "model.safetensors")
    named = set(fields("Models"))
    assert set(metadata) <= named and metadata["format"] == "ocsc/1" and "dictionary" in tensors
    assert all(name == "dictionary" or name.startswith("state.") for name in tensors)
    assert named - set(metadata) - tensors <= {"state.NAME", "progress", "data", "notes", "samples"}
    assert json.loads(metadata["config"])["n_filters"] == 4


def test_logs(run):
    lines = [json.loads(line) for line in (run / "run.jsonl").read_text().splitlines()]
    named = [name for name in fields("Run logs")]
    assert all(list(line) == named for line in lines)
    assert {line["event"] for line in lines} == {"step", "pass", "end"}


def test_codes(run, program):
    program("code", "model.safetensors", "x.npy", "--out", "codes")
    named = fields("Codes")
    path = sorted((run / "codes").glob("*.npz"))[0]
    with np.load(path) as archive:
        assert set(archive.files) <= set(named)
        absent = {"recording", "start", "rate", "problem", "base", "mixing", "whole", "place", "order"}
        assert set(named) - set(archive.files) <= absent
    again = run / "again.npz"
    ocsc.Code.load(path).save(again)
    with np.load(again) as archive:
        assert set(archive.files) <= {*named, "margin"}


def test_results(run, program):
    named = set(fields("Results as JSON"))
    own = json.loads(program("evaluate", "model.safetensors", "x.npy", "--json"))
    assert set(own) == named - {"psnr_reference", "ssim_reference", "outliers", "skipped"}
    assert set(ocsc.load(run / "model.safetensors").evaluate(smooth(6))) <= named


def test_tables(run, program):
    program("events", "model.safetensors", "x.npy", "--out", "events.csv")
    program("evaluate", "model.safetensors", "x.npy", "--csv", "rows.csv")
    columns = (run / "events.csv").read_text().splitlines()[0].split(",")
    assert [name for name in fields("Tables") if name != "position"] == columns
    listed = PAGE.split("`ocsc evaluate --csv rows.csv`:")[1]
    assert re.findall(r"`([^`]+)`", listed) == (run / "rows.csv").read_text().splitlines()[0].split(",")
