"""The signature and the documentation against the library's table: one source."""

import inspect
import re

from ocsc import OnlineCSC, _native

OWN = {"verbose": 0, "callback": None}


def test_the_signature_has_the_settings_and_their_defaults():
    parameters = inspect.signature(OnlineCSC.__init__).parameters
    found = {name: parameter.default for name, parameter in parameters.items() if name != "self"}
    expected = {name: default for name, default, _, _ in _native.settings()}
    # The program has the word, since it also takes a file's name.
    expected["init"] = "random"
    assert found == {**expected, **OWN}
    assert list(found) == [*expected, *OWN]


def test_the_docstring_says_what_the_library_says():
    text = re.sub(r"\s+", " ", OnlineCSC.__doc__)
    for name, default, doc, _ in _native.settings():
        assert re.search(rf" {name} : [^:]*?{re.escape(doc)}\.", text), f"{name}: expected {doc!r}"
        if default is not None:
            assert f"default={default!r} {doc[:20]}" in text, f"{name}: expected default={default!r}"


def test_methods_are_documented():
    names = [name for name, _ in _native.methods()]
    assert len(names) == 10
    assert all(name in OnlineCSC.__doc__ for name in names)
