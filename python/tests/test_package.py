"""The package as a whole: what importing it brings along, and its documentation."""

import doctest
import importlib
import pkgutil
import sys

import pytest
from conftest import run_python

import ocsc


def test_importing_brings_numpy_and_nothing_else():
    code = "import sys, ocsc; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(run_python(code).split())
    assert "numpy" in loaded and not loaded & {"sklearn", "scipy", "sparse", "torch", "pandas", "matplotlib", "joblib", "IPython"}


def test_version_is_that_of_the_crate():
    assert ocsc.__version__ == ocsc._native.version() != ""


def test_everything_public_is_documented():
    for name in ocsc.__all__:
        assert getattr(ocsc, name).__doc__, name
    for name, member in vars(ocsc.OnlineCSC).items():
        if not name.startswith("_"):
            assert member.__doc__, name


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(ocsc.__path__) if m.name not in ("_native", "plot")])
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"ocsc.{name}")
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_examples_of_the_package():
    failed, tried = doctest.testmod(sys.modules["ocsc"])
    assert failed == 0 and tried > 3
