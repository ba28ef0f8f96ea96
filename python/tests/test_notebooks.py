"""The notebooks run, and what they claim is so."""

import os
import sys
from pathlib import Path

import pytest
from conftest import ROOT

pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "python")]
import notebooks  # noqa: E402
from figures import EXAMPLES  # noqa: E402

DATA = Path(os.environ.get("OCSC_DATA", ROOT.parent / "shared/data"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", notebooks.NOTEBOOKS)
def test_notebooks(name, tmp_path):
    example = EXAMPLES[notebooks.NOTEBOOKS[name]]
    if example.needs_data and not DATA.is_dir():
        pytest.skip("the shared data are absent (set OCSC_DATA)")
    for package in example.packages:
        pytest.importorskip(package, reason=f"{package} is not installed")
    made, text = notebooks.run(name, ROOT / "python/examples", tmp_path, DATA)
    assert text and made.cells[0].source.startswith(f"# {example.title}")
