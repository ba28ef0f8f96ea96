"""What docs/from-sporco.md says, against SPORCO and alphacsc where they are installed.

The page's code is run as it stands; then the codes of both sides are compared by an objective that is recomputed here."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import ocsc

PAGE = Path(__file__).resolve().parents[2] / "docs/from-sporco.md"
WITHIN = 1e-3


def blocks(part):
    """The pieces of Python code of a part of the page, by heading."""
    text = re.split(r"^## ", PAGE.read_text(), flags=re.M)
    (chosen,) = [section for section in text if section.startswith(part + "\n")]
    sections = re.split(r"^### ", chosen, flags=re.M)[1:]
    return {s.splitlines()[0]: re.findall(r"^```python\n(.*?)^```", s, flags=re.M | re.S) for s in sections}


def run(part, heading, names, pieces=slice(None)):
    """Runs the code under a heading, or pieces of it; the names afterwards."""
    code = "\n".join(blocks(part)[heading][pieces])
    assert code
    names = {"np": np, "ocsc": ocsc, **names}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="sporco|alphacsc|numba")
        warnings.filterwarnings("ignore", category=SyntaxWarning)
        exec(compile(code, f"{PAGE.name}: {heading}", "exec"), names)
    return names


def objective(x, d, z, beta, mask=1.0):
    """1/2 ||mask (x - sum_k d_k * z_k)||^2 + beta ||z||_1, circular, from its definition; d (K, C, ...), x (C, ...)."""
    axes = tuple(range(2, d.ndim))
    shape = x.shape[1:]
    product = np.fft.fftn(d, shape, axes) * np.fft.fftn(z, shape, tuple(range(1, z.ndim)))[:, None]
    residual = mask * (x - np.fft.ifftn(product, axes=axes).real.sum(axis=0))
    return 0.5 * float((residual**2).sum()) + beta * float(np.abs(z).sum())


def unit(d, axes):
    return d / np.sqrt((d**2).sum(axes, keepdims=True))


@pytest.fixture(scope="module")
def sporco():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cbpdn = pytest.importorskip("sporco.admm.cbpdn", reason="SPORCO is not installed")
        # Many threads for transforms as small as these cost more than they save.
        cbpdn.sporco_fft = pytest.importorskip("sporco.fft")
        cbpdn.sporco_fft.pyfftw_threads = 1
        return cbpdn


@pytest.fixture(scope="module")
def alphacsc():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("alphacsc", reason="alphacsc is not installed")


@pytest.fixture
def problem():
    """An image made of few filters and some noise, as SPORCO wants it."""
    rng = np.random.default_rng(0)
    D = unit(rng.standard_normal((5, 6, 8)), (0, 1))
    z = rng.standard_normal((8, 32, 30)) * (rng.random((8, 32, 30)) < 0.02)
    f = np.fft.fft2(np.moveaxis(D, -1, 0), (32, 30)) * np.fft.fft2(z)
    s = np.fft.ifft2(f.sum(0)).real + 0.05 * rng.standard_normal((32, 30))
    return {"D": D, "s": s, "lmbda": 0.1, "filters": np.moveaxis(D, -1, 0)}


def first(z):
    """SPORCO's codes (H, W, 1, 1, M) as (K, H, W)."""
    return np.moveaxis(z[:, :, 0, 0], -1, 0)


def test_dictionaries_round_trip():
    rng = np.random.default_rng(0)
    D, D_colour = rng.standard_normal((5, 6, 8)), rng.standard_normal((5, 6, 3, 8))
    names = run("SPORCO", "Convert", {"D": D, "D_colour": D_colour})
    assert names["filters"].shape == (8, 5, 6) and names["colour"].shape == (8, 3, 5, 6)
    np.testing.assert_array_equal(names["D_again"], D)
    np.testing.assert_array_equal(names["D_colour_again"], D_colour)
    # Through an estimator, bit for bit: no pass changes nothing.
    init = unit(names["colour"], (1, 2, 3))
    model = ocsc.OnlineCSC(8, (5, 6), init=init, passes=0, axes="NHWC", dtype="f64").fit(rng.standard_normal((1, 9, 9, 3)))
    np.testing.assert_allclose(model.filters_, init, rtol=1e-14)


def test_filters_last_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 24, 24))

    def sporco_filters(*shape):
        D = rng.standard_normal(shape)
        return D / np.sqrt((D**2).sum(tuple(range(len(shape) - 1)), keepdims=True))

    def learn(init, **params):
        return ocsc.OnlineCSC(init=init, passes=0, **params).fit(X)

    D = sporco_filters(8, 8, 32)
    norms = r"init: expected filters first, \(K, axes...\), found shape \(8, 8, 32\) with filters last, as SPORCO has them, it seems: .*norms"
    with pytest.raises(ValueError, match=norms + r".*give np\.moveaxis\(init, -1, 0\)"):
        learn(D)
    with pytest.raises(ValueError, match="filters: expected filters first"):
        ocsc.code(X, D, beta=1.0)
    assert learn(np.moveaxis(D, -1, 0)).filters_.shape == (32, 8, 8)
    with pytest.raises(ValueError, match=r"init\.transpose\(3, 2, 0, 1\)"):
        ocsc.OnlineCSC(init=sporco_filters(8, 8, 24, 16), axes="NCHW").fit(rng.standard_normal((4, 24, 24, 24)))
    # Norms that tell nothing: what the call says decides, else a warning tells.
    loose = 0.5 * D
    for params in (dict(n_filters=32), dict(n_filters=32, filter_shape=(8, 8))):
        with pytest.raises(ValueError, match=r"there are 32 then, as n_filters says; give np\.moveaxis"):
            learn(loose, **params)
    with pytest.warns(UserWarning, match=r"read as 8 filters of \(8, 32\); if its filters are the last axis, as SPORCO has them, give np\.moveaxis"):
        ocsc.OnlineCSC(init=loose, passes=0).fit(rng.standard_normal((4, 40, 40)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ocsc.OnlineCSC(init=loose, n_filters=8, filter_shape=(8, 32), passes=0).fit(rng.standard_normal((4, 40, 40)))
        learn(rng.standard_normal((8, 8, 8)))
        learn(0.5 * np.moveaxis(D, -1, 0))
    assert model.filters_.shape == (8, 8, 32)


def test_codes_agree_with_sporco(sporco, problem, capsys):
    names = run("SPORCO", "Code an image", problem)
    d, s, beta = problem["filters"][:, None], problem["s"][None], problem["lmbda"]
    theirs = objective(s, d, first(names["Z"]), beta)
    ours = objective(s, d, names["z"], beta)
    assert ours == pytest.approx(theirs, rel=WITHIN)
    # And ours is the best there is, up to its gap.
    assert ours * (1 - names["codes"].gap[0]) <= theirs
    assert names["codes"].objective[0] == pytest.approx(ours, rel=1e-6)
    np.testing.assert_allclose(names["back"], names["r"], atol=0.02 * np.abs(names["r"]).max())
    # Coefficients stand at the same places.
    np.testing.assert_allclose(names["z"], first(names["Z"]), atol=0.02 * np.abs(names["z"]).max())


def test_colour_codes_agree_with_sporco(sporco):
    rng = np.random.default_rng(1)
    D, s = unit(rng.standard_normal((4, 4, 3, 6)), (0, 1, 2)), rng.standard_normal((20, 22, 3))
    options = sporco.ConvBPDN.Options({"MaxMainIter": 500, "RelStopTol": 1e-4})
    theirs = first(sporco.ConvBPDN(D, s, 1.0, options, dimK=0).solve())
    filters = D.transpose(3, 2, 0, 1)
    codes = ocsc.code(s[None], filters, 1.0, axes="NHWC", tol=1e-4, dtype="f64")
    image = s.transpose(2, 0, 1)
    assert objective(image, filters, codes.to_dense()[0], 1.0) == pytest.approx(objective(image, filters, theirs, 1.0), rel=WITHIN)


def test_default_lmbda_is_of_the_spectra(sporco, problem):
    solver = sporco.ConvBPDN(problem["D"], problem["s"])
    spectra = np.fft.fft2(problem["filters"], problem["s"].shape).conj() * np.fft.fft2(problem["s"])
    assert float(np.squeeze(solver.lmbda)) == pytest.approx(0.1 * np.abs(spectra).max(), rel=1e-6)
    # That of beta_max is of the correlations.
    correlations = np.abs(np.fft.ifft2(spectra).real).max()
    assert ocsc.beta_max(problem["s"][None], problem["filters"], dtype="f64")[0] == pytest.approx(correlations, rel=1e-9)


def test_masked_codes_agree_with_sporco(sporco, problem):
    W = (np.random.default_rng(2).random(problem["s"].shape) < 0.6).astype(float)
    options = sporco.ConvBPDN.Options({"MaxMainIter": 500, "RelStopTol": 1e-4})
    names = run("SPORCO", "With missing values", {**problem, "W": W, "cbpdn": sporco, "options": options})
    d, s, beta = problem["filters"][:, None], problem["s"][None], problem["lmbda"]
    z = first(names["Z_masked"])[: len(d)]
    theirs, ours = (objective(s, d, code, beta, W) for code in (z, names["codes_masked"].to_dense()[0]))
    assert ours == pytest.approx(theirs, rel=WITHIN)


@pytest.mark.parametrize("heading, end", [("Learn, all samples at once", 1), ("Learn, one sample after the other", 2)])
def test_learning_as_with_sporco(sporco, heading, end):
    rng = np.random.default_rng(3)
    truth = unit(rng.standard_normal((4, 5, 5)), (1, 2))
    z = rng.standard_normal((12, 4, 24, 24)) * (rng.random((12, 4, 24, 24)) < 0.01)
    samples = np.fft.ifft2((np.fft.fft2(truth, (24, 24)) * np.fft.fft2(z)).sum(1)).real
    D0 = unit(rng.standard_normal((5, 5, 4)), (0, 1))
    names = run("SPORCO", heading, {"D0": D0, "S": np.moveaxis(samples, 0, -1), "lmbda": 0.1})

    def judged(filters):
        filters = filters / np.maximum(1, np.sqrt((filters**2).sum((1, 2), keepdims=True)))
        return ocsc.code(samples, filters, 0.1, tol=1e-3, dtype="f64").objective.mean()

    assert names[f"filters{end}"].shape == (4, 5, 5)
    before = judged(np.moveaxis(D0, -1, 0))
    theirs, ours = judged(np.moveaxis(names[f"D{end}"], -1, 0)), judged(names[f"filters{end}"])
    # The problem is not convex: both must have learned, and about as much.
    assert theirs < 0.9 * before and ours < 0.9 * before and ours < 1.2 * theirs, (before, theirs, ours)


@pytest.mark.parametrize("positive", [True, False])
def test_codes_agree_with_alphacsc(alphacsc, positive):
    rng = np.random.default_rng(4)
    n_channels, m, n = 2, 12, 300
    uv = np.concatenate([unit(rng.standard_normal((3, n_channels)), 1), unit(rng.standard_normal((3, m)), 1)], axis=1)
    atoms = run("alphacsc", "Convert", {"uv": uv, "n_channels": n_channels})["atoms"]
    assert atoms.shape == (3, n_channels, m)
    x = rng.standard_normal((n_channels, n))
    names = {"x": x, "atoms": atoms, "reg": 1.0, "m": m}
    if positive:
        names = run("alphacsc", "Code a signal", names)
    else:
        from alphacsc.update_z_multi import update_z_multi

        padded = np.pad(x, ((0, 0), (m - 1, m - 1)))
        options = {"solver": "lgcd", "positive": False, "solver_kwargs": {"tol": 1e-5}}
        names["z_theirs"] = update_z_multi(padded[None], atoms, 1.0, **options)[0]
        names["z_ours"] = ocsc.code(x[None], atoms, 1.0, axes="NCW", boundary="zero", tol=1e-4, dtype="f64").to_dense()
    assert names["z_ours"].shape == names["z_theirs"].shape == (1, 3, n + m - 1)

    def judged(z):
        # Padded by m - 1 on both sides, nothing wraps around.
        padded = np.pad(x, ((0, 0), (m - 1, m - 1)))
        return objective(padded, atoms, np.pad(z, ((0, 0), (0, m - 1))), 1.0)

    ours, theirs = judged(names["z_ours"][0]), judged(names["z_theirs"][0])
    assert ours == pytest.approx(theirs, rel=WITHIN)
    assert positive == bool((names["z_ours"] >= 0).all())


def test_learning_as_with_alphacsc(alphacsc):
    rng = np.random.default_rng(5)
    m = 16
    truth = unit(rng.standard_normal((3, 2, m)), (1, 2))
    trials = 0.02 * rng.standard_normal((4, 2, 400))
    for trial in trials:
        for k in range(3):
            for start in rng.integers(0, 400 - m, 8):
                trial[:, start : start + m] += rng.uniform(0.5, 1.5) * truth[k]
    names = run("alphacsc", "Learn", {"trials": trials, "m": m}, slice(1, None))
    assert names["filters3"].shape == (3, 2, m)

    def found(filters):
        """The best match of every true atom, shifted: 1 if it was found."""
        filters = unit(filters, (1, 2))
        padded = np.pad(filters, ((0, 0), (0, 0), (m, m)))
        shifts = np.stack([padded[..., s : s + m] for s in range(2 * m + 1)])
        return np.abs(np.einsum("skcw,jcw->skj", shifts, truth)).max(axis=(0, 1))

    assert found(names["filters3"]).min() > 0.8, found(names["filters3"])
    try:
        theirs = run("alphacsc", "Learn", {"trials": trials, "m": m}, slice(1))["D3"]
    except (TypeError, ValueError) as error:
        pytest.skip(f"alphacsc cannot learn with numpy {np.__version__} ({error}); ours did")
    assert theirs.shape == (3, 2, m) and found(theirs).min() > 0.8, found(theirs)


def test_every_parameter_of_the_page_exists():
    """Names after `OnlineCSC(` and in the right columns are parameters."""
    known = set(ocsc.OnlineCSC().get_params())
    called = re.findall(r"OnlineCSC\(([^)]*)\)", PAGE.read_text())
    named = {name for call in called for name in re.findall(r"(\w+)=", call)}
    assert named and named <= known, named - known
    right = [line.split("|")[2] for line in PAGE.read_text().splitlines() if line.startswith("| `opt[")]
    words = {word for cell in right for word in re.findall(r"`([a-z_]+)(?:=[^`]*)?`", cell)}
    assert words <= known, words - known
