"""The constructor against the declarations that it is made from: the library's settings, and what is Python's own."""

import inspect
import pickle
import re
import subprocess
import typing

import numpy as np
import pytest
from conftest import ROOT, find_program, run_python

import ocsc
from ocsc import OnlineCSC, _declarations, _native
from ocsc._declarations import OWN, PARAMETERS, POSITIONS, SETTINGS

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def parameters():
    return inspect.signature(OnlineCSC).parameters


def test_the_signature_has_every_setting_and_what_is_pythons_own():
    expected = {setting.name: setting.default for setting in _native.settings() if setting.is_parameter}
    expected.update({parameter.name: parameter.default for parameter in OWN})
    # Without one it is chosen by the data.
    expected["beta"] = None
    assert {name: parameter.default for name, parameter in parameters().items()} == expected
    assert set(SETTINGS) & {parameter.name for parameter in OWN} == set()
    assert set(_declarations.EXTENDED) <= set(SETTINGS)


def test_positions_stay():
    """Calls that give parameters by position go on meaning the same; what is new is given by name."""
    assert list(parameters())[: len(POSITIONS)] == POSITIONS
    kinds = {name: parameter.kind for name, parameter in parameters().items()}
    assert all((kind == POSITIONAL) == (name in POSITIONS) for name, kind in kinds.items())
    model = OnlineCSC(5, 7, 0.5, None, "osc", 3, tol=0.1)
    assert (model.n_filters, model.filter_shape, model.beta, model.method, model.passes) == (5, 7, 0.5, "osc", 3)
    assert (model.tol, model.sweeps) == (0.1, 1)


def test_a_setting_that_is_new_is_given_by_name(monkeypatch):
    new = _declarations.Parameter("brand_new", "bool", "bool", False, "Does something.")
    monkeypatch.setattr(_declarations, "PARAMETERS", (*PARAMETERS, new))
    *_, last = _declarations.signature().parameters.values()
    assert (last.name, last.kind, last.default) == ("brand_new", inspect.Parameter.KEYWORD_ONLY, False)
    assert "brand_new : bool, default=False\n    Does something." in _declarations.documentation()


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {"colour": 1}, r"OnlineCSC.__init__\(\) got an unexpected keyword argument 'colour'"),
        ((5,), {"n_filters": 5}, r"OnlineCSC.__init__\(\) multiple values for argument 'n_filters'"),
        (range(len(POSITIONS) + 1), {}, r"OnlineCSC.__init__\(\) too many positional arguments"),
    ],
)
def test_wrong_calls_are_refused(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        OnlineCSC(*args, **kwargs)


def test_the_docstring_says_what_the_declarations_say():
    text = re.sub(r"\s+", " ", OnlineCSC.__doc__)
    for setting in SETTINGS.values():
        assert re.search(rf" {setting.name} : [^:]*?{re.escape(setting.doc)}\.", text), setting.name
        if setting.default is not None and setting.name != "beta":
            assert f"default={setting.default!r} {setting.doc[:20]}" in text, setting.name
    sections = re.findall(r"^(\w+)\n-+$", inspect.getdoc(OnlineCSC), re.MULTILINE)
    assert sections == ["Parameters", "Attributes", "Examples"]
    assert max(map(len, inspect.getdoc(OnlineCSC).splitlines())) <= 130


def test_methods_are_documented():
    names = [name for name, _ in _native.methods()]
    assert "ocsc" in names and all(repr(name) in OnlineCSC.__doc__ for name in names)


def test_annotations_and_types_are_known():
    stub = (ROOT / "python/python/ocsc/_parameters.pyi").read_text()
    for name, parameter in parameters().items():
        assert f"    {name}: {parameter.annotation}\n" in stub
    hints = typing.get_type_hints(OnlineCSC.__init__)
    assert hints["n_filters"] is int and list(hints)[:-1] == list(parameters())
    assert {setting.kind for setting in _native.settings()} <= set(_declarations.TYPES)


def test_changes_after_learning_are_documented():
    text = OnlineCSC.set_params.__doc__
    for setting in SETTINGS.values():
        named = setting.is_in_coding + setting.is_in_learning + setting.ends_learning
        assert text.count(f"``{setting.name}``") >= named, setting.name


def test_functions_have_the_same_defaults():
    for function in (ocsc.code, ocsc.beta_max, ocsc.reconstruct):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in SETTINGS and parameter.default is not parameter.empty:
                assert parameter.default == SETTINGS[name].default, (function.__name__, name)


def test_python_may_strip_docstrings():
    code = "import inspect, ocsc; print(ocsc.OnlineCSC.__doc__, len(inspect.signature(ocsc.OnlineCSC).parameters))"
    assert run_python(f"import subprocess, sys; subprocess.run([sys.executable, '-OO', '-c', {code!r}], check=True)") == (
        f"None {len(PARAMETERS)}\n"
    )


def test_pickles_from_before_a_setting_was_added(images):
    model = OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3).fit(images)
    state = pickle.loads(pickle.dumps(model.__getstate__()))
    del state["attributes"]["sweeps"], state["attributes"]["_learned"]["sweeps"]
    old = OnlineCSC.__new__(OnlineCSC)
    old.__setstate__(state)
    assert old.get_params() == model.get_params()
    assert np.array_equal(old.partial_fit(images).filters_, model.partial_fit(images).filters_)


@pytest.mark.parametrize("method", ["ocsc-paper", "fcsc", "ocdl2"])
def test_settings_that_only_the_method_obeys_do_not_hinder_coding(method, images):
    own = {name: 7 for name in ("max_iters", "pass_code_iters") if method in SETTINGS[name].methods}
    assert own
    model = OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3, method=method, tol=0.5, **own)
    codes = model.fit(images).set_params(tol=0.01).transform(images)
    assert codes.gap.max() <= 0.01
    assert model.score(images) < 0


def test_the_table_names_flags_that_the_program_has():
    program = find_program()
    if program is None or not program.is_file():
        pytest.skip("the program ocsc is not built: cargo build, or set OCSC_PROGRAM")
    listed = {}
    for command in ("learn", "code", "evaluate"):
        text = subprocess.run([program, "help", command], capture_output=True, text=True, check=True).stdout
        listed[command] = set(re.findall(r"--([a-z0-9-]+)", text))
    assert {parameter.flag for parameter in PARAMETERS} - {None} <= listed["learn"]
    for setting in _native.settings():
        if setting.code_flag is not None:
            assert setting.code_flag in listed["code"] & listed["evaluate"], setting.name
