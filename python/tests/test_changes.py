"""Parameters that are changed after learning: they take effect, or are refused; none is ignored in silence."""

import pickle

import numpy as np
import pytest
from conftest import smooth

import ocsc
from ocsc import OnlineCSC

SMALL = dict(n_filters=6, filter_shape=(5, 5), beta=0.3)


def codes_equal(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("filter", "position", "value", "shapes", "beta"))


@pytest.mark.parametrize(
    "change",
    [
        dict(beta=0.9),
        dict(tol=1e-4),
        dict(boundary="free"),
        dict(non_negative=True),
        dict(weights=[1, 1, 1, 1, 1, 1e6]),
        dict(dtype="f64"),
        dict(preprocess="mean"),
        dict(beta=0.9, boundary="zero", non_negative=True),
    ],
    ids=lambda change: ",".join(change),
)
def test_settings_of_coding_reach_transform(change, images):
    model = OnlineCSC(**SMALL).fit(images)
    before, filters = model.transform(images), model.filters_
    after = model.set_params(**change).transform(images)
    expected = ocsc.code(images, filters, **{"beta": 0.3, "tol": model.tol, **change})
    assert codes_equal(after, expected) and not codes_equal(after, before)
    assert model.inverse_transform(after).shape == images.shape
    assert model.score(images) == -model.evaluate(images)["objective"]
    # As attributes too, and back again.
    for name in change:
        setattr(model, name, OnlineCSC(**SMALL).get_params()[name])
    assert codes_equal(model.transform(images), before)


def test_max_rounds_and_threads_reach_transform(images):
    model = OnlineCSC(**SMALL).fit(images)
    with pytest.warns(ocsc.ConvergenceWarning, match="6 of 6 codes did not reach the tolerance 1e-09"):
        model.set_params(tol=1e-9, max_rounds=1).transform(images)
    with pytest.raises(ValueError, match="threads: expected"):
        model.set_params(threads=0).transform(images)


def test_bad_values_are_refused_at_transform(images):
    model = OnlineCSC(**SMALL).fit(images)
    for change, message in [
        (dict(beta=-1), "beta: expected a finite number above 0, found -1"),
        (dict(weights=[1, 2]), "weights: expected one for each of 6 filters, found 2"),
        (dict(boundary="open"), "boundary: expected .*circular.*, found 'open'"),
    ]:
        with pytest.raises(ValueError, match=message):
            pickle.loads(pickle.dumps(model)).set_params(**change).transform(images)


def test_beta_beside_beta_ratio(images):
    model = OnlineCSC(n_filters=6, filter_shape=(5, 5), beta_ratio=0.2).fit(images)
    assert model.transform(images).beta[0] == model.beta_
    with pytest.raises(ValueError, match=r"beta: expected beta_ratio=None .* set_params\(beta=0.5, beta_ratio=None\)"):
        model.set_params(beta=0.5).transform(images)
    assert model.set_params(beta_ratio=None).transform(images).beta[0] == 0.5
    for ask in (model.transform, model.partial_fit, model.score):
        with pytest.raises(ValueError, match="beta_ratio: expected 0.2, as when learning began, found 0.4; .* the next fit"):
            model.set_params(beta_ratio=0.4)
            ask(images)


def test_settings_of_learning_reach_partial_fit(images):
    more = smooth(3, seed=2)
    plain = OnlineCSC(**SMALL).fit(images).partial_fit(more)
    for change in [
        dict(beta=2.0),
        dict(tol=0.3),
        dict(sweeps=4),
        dict(forgetting=1.0),
        dict(non_negative=True),
        dict(weights=[9, 1, 1, 1, 1, 1]),
        dict(batch_size=3),
    ]:
        model = OnlineCSC(**SMALL).fit(images).set_params(**change)
        assert not np.array_equal(model.partial_fit(more).filters_, plain.filters_), change
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.partial_fit(more).filters_, model.partial_fit(more).filters_), change
    assert OnlineCSC(**SMALL).fit(images).set_params(beta=2.0).partial_fit(more).beta_ == 2.0
    same = OnlineCSC(**SMALL).fit(images).set_params(**OnlineCSC(**SMALL).get_params()).partial_fit(more)
    assert np.array_equal(same.filters_, plain.filters_)


def test_a_change_goes_on_from_the_same_statistics(images):
    """With beta changed and changed back nothing was learned in between, so that nothing may differ."""
    more = smooth(3, seed=2)
    for method in ("ocsc", "ocsc-paper", "ocdl1", "ocdl2", "osc"):
        plain = OnlineCSC(**SMALL, method=method).fit(images)
        other = OnlineCSC(**SMALL, method=method).fit(images)
        other._changed_learner(other.set_params(beta=2.0)._learner, ocsc._inputs.reader(more, None, 2))
        other.set_params(beta=0.3)
        assert np.array_equal(other.partial_fit(more).filters_, plain.partial_fit(more).filters_), method


@pytest.mark.parametrize(
    "change",
    [
        dict(n_filters=7),
        dict(filter_shape=(3, 3)),
        dict(method="ocsc-paper"),
        dict(boundary="zero"),
        dict(preprocess="mean"),
        dict(dtype="f64"),
        dict(update_rho=3.0),
    ],
    ids=lambda change: ",".join(change),
)
def test_partial_fit_refuses_what_needs_a_fit(change, images):
    # The default method obeys all of these but one.
    method = "ocsc-paper" if "update_rho" in change else "ocsc"
    model = OnlineCSC(**SMALL, method=method, tol=0.5).fit(images)
    filters, (name, value) = model.filters_, next(iter(change.items()))
    with pytest.raises(ValueError, match=f"{name}: expected .*, as when learning began, to go on, found .* next fit"):
        model.set_params(**change).partial_fit(images)
    assert np.array_equal(model.filters_, filters) and model.n_steps_ == 6
    assert model.fit(images).n_steps_ == 6 and getattr(model, name) == value


def test_another_number_of_filters_waits_for_the_next_fit(images):
    model = OnlineCSC(**SMALL).fit(images).set_params(n_filters=7, method="ocsc-paper", passes=2)
    assert model.transform(images).shape == (6, 6, 24, 24)
    assert model.fit(images).transform(images).shape == (6, 7, 24, 24)


def test_files_hold_what_transform_heeds(images, tmp_path):
    model = OnlineCSC(**SMALL).fit(images)
    model.save(tmp_path / "plain.safetensors")
    model.set_params(tol=0.02).save(tmp_path / "m.safetensors")
    model.set_params(tol=0.01).save(tmp_path / "same.safetensors")
    assert (tmp_path / "same.safetensors").read_bytes() == (tmp_path / "plain.safetensors").read_bytes()
    model.set_params(beta=0.9, non_negative=True).save(tmp_path / "m.safetensors")
    loaded = ocsc.load(tmp_path / "m.safetensors")
    assert loaded.beta == 0.9 and codes_equal(loaded.transform(images), model.transform(images))
    assert ocsc.load(tmp_path / "plain.safetensors", beta=0.7).transform(images).beta[0] == 0.7
    assert codes_equal(pickle.loads(pickle.dumps(model)).transform(images), model.transform(images))


def test_pickles_of_earlier_versions(images):
    model = OnlineCSC(**SMALL).fit(images)
    state = model.__getstate__()
    del state["attributes"]["_learned"]
    old = OnlineCSC.__new__(OnlineCSC)
    old.__setstate__(state)
    assert old.set_params(beta=0.9).transform(images).beta[0] == 0.9


def test_methods_that_would_not_heed_a_setting(images):
    for method in (name for name, _ in ocsc.methods() if name not in ("ocsc", "sgd", "aocdl", "scsc")):
        with pytest.raises(ValueError, match=f"non_negative: expected False with the method `{method}`, .*ocsc, .* would.* found True"):
            OnlineCSC(**SMALL, method=method, non_negative=True).fit(images)
        with pytest.raises(ValueError, match=f"weights: expected None with the method `{method}`, .*ocsc, .* would.* found"):
            OnlineCSC(**SMALL, method=method, weights=[1] * 6).fit(images)
