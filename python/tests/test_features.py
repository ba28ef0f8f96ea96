"""docs/features.md counts its own cells rightly, and what it says of `ocsc` is there: flags, commands and names of the package."""

import re
import subprocess

import pytest
from conftest import ROOT, find_program

import ocsc

PAGE = (ROOT / "docs/features.md").read_text("utf-8")
PACKAGES = ["ocsc", "SPORCO", "alphacsc", "DiCoDiLe"]


def rows():
    """Returns the rows of all tables but their heads: the feature, and a cell for each package."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "feature"]


def ours(pattern):
    """Returns what a pattern finds in the code of our column."""
    code = [text for row in rows() for text in re.findall(r"`([^`]+)`", row[1])]
    return sorted({found for text in code for found in re.findall(pattern, text)})


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def helps():
    """Returns what the program says of each of its commands."""
    program = find_program()
    if program is None or not program.is_file():
        pytest.skip("the program ocsc is not built: cargo build, or set OCSC_PROGRAM")
    listed = run(program, "help").partition("Commands:\n")[2].partition("\n\n")[0]
    commands = [name for name in re.findall(r"^  (\w+) ", listed, re.M) if name != "help"]
    return {name: run(program, name, "--help") for name in commands}


def test_every_cell_says_yes_no_or_partly():
    assert len(rows()) > 50
    for row in rows():
        assert len(row) == 1 + len(PACKAGES), row
        assert all(re.match(r"(yes|no|partly)\b", cell) for cell in row[1:]), row


def test_no_feature_stands_twice():
    names = [row[0] for row in rows()]
    assert len(set(names)) == len(names)


def test_counts_at_the_top_are_those_of_the_table():
    def count(package, word):
        return sum(re.match(r"\w+", row[1 + package])[0] == word for row in rows())

    said = [f"{name} fills {count(i, 'yes')} ({count(i, 'partly')} more in part)" for i, name in enumerate(PACKAGES)]
    assert f"Of {len(rows())} rows {', '.join(said)}." in PAGE


def test_flags_and_commands_are_in_the_programs_help(helps):
    known = set(re.findall(r"--[a-z0-9-]+", "\n".join(helps.values())))
    flags, commands = ours(r"--[a-z0-9-]+"), ours(r"^ocsc (\w+)")
    assert len(flags) > 20 and len(commands) > 5
    assert [flag for flag in flags if flag not in known] == []
    assert [command for command in commands if command not in helps] == []


def test_names_are_in_the_package():
    names = ours(r"\bocsc\.([\w.]+)")
    assert len(names) > 5
    for name in names:
        found = ocsc
        for part in name.split("."):
            assert hasattr(found, part), f"ocsc.{name}"
            found = getattr(found, part)
