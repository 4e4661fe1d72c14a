"""Live pictures: each number that a browser shows is the package's, at several settings."""

import re

import numpy as np
import pytest

import npformer as nf
from tests.needs import NEEDS
from tests.pages import page_without_errors

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site.live import FIGURE, place_figures, script
from docs.site.pages import DOCS
from npformer.core import constants
from npformer.training.generation.choosing import Choice

pytestmark = pytest.mark.slow

F = nf.functional
CHAPTERS = {
    name: page.stem
    for page in sorted((DOCS / "chapters").glob("*.md"))
    for name in re.findall(r"<!-- live: ([a-z_]+) -->", page.read_text("utf-8"))
}


def softmax(x, dy, temperature):
    y, cache = F.softmax(np.array(x) / temperature)
    dx = F.softmax_backward(np.array(dy), cache) / temperature
    jacobian = np.stack([F.softmax_backward(row, cache) for row in np.eye(3)], axis=1) / temperature
    return {"x": x, "Z": np.exp(np.array(x) / temperature).sum(), "y": y, "J": jacobian, "dx": dx}


def cross_entropy(z, label):
    loss, cache = F.softmax_cross_entropy(np.array([z]), np.array([int(label)]))
    dz = F.softmax_cross_entropy_backward(1.0, cache)
    numbers = {"Z": np.exp(z).sum(), "p": F.softmax(np.array(z))[0], "q": np.eye(3)[int(label)]}
    return numbers | {"loss": loss, "dz": dz}


def layer_norm(x, gamma, beta, dy):
    x, gamma, beta, dy = map(np.array, (x, gamma, beta, dy))
    y, cache = F.layer_norm(x, gamma, beta)
    n, _ = F.layer_norm(x, np.ones(3), np.zeros(3))
    s = np.sqrt(x.var() + 1e-5)
    gradients = zip(("dx", "dgamma", "dbeta"), F.layer_norm_backward(dy, cache), strict=True)
    g = gamma * dy
    means = {"mean(g)": g.mean(), "mean(g n)": (g * n).mean()}
    return {"mean": x.mean(), "s": s, "n": n, "y": y, "g": g} | means | dict(gradients)


def rms_norm(x, gamma, dy):
    x, gamma, dy = map(np.array, (x, gamma, dy))
    y, cache = F.rms_norm(x, gamma)
    n, _ = F.rms_norm(x, np.ones(3))
    gradients = zip(("dx", "dgamma"), F.rms_norm_backward(dy, cache), strict=True)
    g = gamma * dy
    numbers = {"r": np.sqrt((x * x).mean() + 1e-5), "n": n, "y": y, "g": g}
    return numbers | {"mean(g n)": (g * n).mean()} | dict(gradients)


def dropout(x, dy, rate, u, draws):
    class Drawn:
        """A generator that draws what the page drew."""

        def random(self, shape, dtype=None):
            return u.reshape(shape)

    y, mask = F.dropout(np.array(x), rate, Drawn()) if rate else (x, np.ones(6))
    return {"mask": mask, "y": y, "dx": F.dropout_backward(np.array(dy), mask), "draws": draws}


def activations(x, dy, name):
    pair = {"ReLU": "relu", "GELU": "gelu", "SiLU": "silu"}[name]
    y, cache = getattr(F, pair)(np.array([x]))
    backward = getattr(F, f"{pair}_backward")
    return {"y": y, "dy/dx": backward(np.ones(1), cache), "dx": backward(np.array([dy]), cache)}


def language_models(z, **cut):
    temperature, k, p = cut["temperature"], int(cut["top-k"]), cut["top-p"]
    chosen = Choice(temperature, k, p).probabilities(np.array([z]))
    scores = np.array(z) / temperature
    return {"Z": np.exp(scores).sum(), "all tokens": F.softmax(scores)[0], "drawn from": chosen[0]}


MASKS = {
    "none": {},
    "causal": {"causal": True},
    "token 3 is padding": {"mask": np.arange(4)[None, :] < 3},
}


def attention(Q, K, V, mask):
    query, key, value = map(np.array, (Q, K, V))
    scores, _ = F.attention_scores(query, key)
    weights, _ = F.averaging_weights(scores, **MASKS[mask])
    seen = np.where(weights > 0.0, scores, -np.inf)
    y, _ = F.scaled_dot_product_attention(query, key, value, **MASKS[mask])
    normaliser = np.exp(seen).sum(axis=1, keepdims=True)
    return {"S": seen, "Z": normaliser, "A": weights, "Y": y}


def attention_backward(Q, K, V, dY, mask):
    query, key, value, dy = map(np.array, (Q, K, V, dY))
    _, cache = F.scaled_dot_product_attention(query, key, value, **MASKS[mask])
    dquery, dkey, dvalue = F.scaled_dot_product_attention_backward(dy, cache)
    scores, _ = F.attention_scores(query, key)
    dscores, _ = F.average_backward(dy, F.average(scores, value, **MASKS[mask])[1])
    gradients = {"dV": dvalue, "dA": dy @ value.T, "dS": dscores, "dQ": dquery, "dK": dkey}
    return attention(Q, K, V, mask) | gradients


def window(window, form):
    scores = -np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 4.0
    weights, _ = F.averaging_weights(scores, causal=form == "causal", window=int(window))
    return {"keys seen": (weights > 0).sum(axis=1, keepdims=True), "A": weights}


def rotary(q, k, s, t, omega):
    def turned(pair, position):  # the second of two pairs, whose angle is position theta^(-1/2)
        x = np.array([[0.0, pair[0], 0.0, pair[1]]])
        return F.rotary(x, np.array([int(position)]), theta=omega**-2.0)[0][0, 1::2]

    q, k = turned(q, s), turned(k, t)
    return {"q, turned": q, "k, turned": k, "their dot product": q @ k, "distance": s - t}


def fourier(x, dy):
    y, cache = F.fourier_mixing(np.array(x)[:, None])
    dx = F.fourier_mixing_backward(np.array(dy)[:, None], cache)
    return {"C": np.fft.fft(np.eye(8)).real, "y": y[:, 0], "dx": dx[:, 0]}


def embedding(t):
    table = constants.sinusoids(60, 8)
    at, following = table[int(t)], table[int(t) + 1]
    return {"position": at, "next": following, "dot product with the next one": at @ following}


def linear(x, W, b, dy):
    y, cache = F.linear(*map(np.array, (x, W, b)))
    dx, dw, db = F.linear_backward(np.array(dy), cache)
    return {"y": y, "dx": dx, "dW": dw, "db": db}


FORMULAS = {
    "softmax": softmax,
    "cross_entropy": cross_entropy,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "activations": activations,
    "attention": attention,
    "attention_backward": attention_backward,
    "window": window,
    "rotary": rotary,
    "fourier": fourier,
    "embedding": embedding,
    "linear": linear,
    "language_models": language_models,
}


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """Open a page with all live pictures, from a file, and close it without an error."""
    place = tmp_path_factory.mktemp("live") / "page.html"
    figures = "".join(FIGURE.format(name) for name in CHAPTERS)
    place.write_text(f"<meta charset=utf-8><script>{script()}</script>{figures}", "utf-8")
    with page_without_errors(browser) as page:
        page.goto(place.as_uri())
        yield page


def settings(figure):
    """Return what the controls of a picture are set to: sliders, choices, and cells."""
    controls = """figure => [...figure.querySelectorAll("[type=range][data-name], select")].map(
        (e) => [e.dataset.name, e.type === "range" ? e.valueAsNumber : e.value])"""
    scalars = {
        name: float(value) if isinstance(value, int) else value
        for name, value in figure.evaluate(controls)
    }
    numbers = shown(figure)
    names = "figure => [...figure.querySelectorAll('table.input')].map((t) => t.dataset.name)"
    inputs = [name for name in figure.evaluate(names) if name not in scalars]
    rows = {name: numbers[name] for name in inputs}
    return scalars | {name: row[0] if len(row) == 1 else row for name, row in rows.items()}


def shown(figure):
    """Return the numbers that a picture shows, by name, without rounding."""
    tables = """figure => [...figure.querySelectorAll("table.numbers")].map((table) => [
        table.dataset.name,
        [...table.rows].map((row) => [...row.querySelectorAll("td")]
            .map((cell) => Number(cell.dataset.value))).filter((row) => row.length)])"""
    return {name: np.array(rows, dtype="float64") for name, rows in figure.evaluate(tables)}


def agrees(numbers, expected):
    for name, value in expected.items():
        values = np.atleast_2d(np.asarray(value, dtype="float64"))
        np.testing.assert_allclose(numbers[name], values, rtol=1e-9, atol=1e-9, err_msg=name)


def move(figure, turn):
    """Set each control and each cell to another value, as a reader would; `turn` says to which."""
    script = """(figure, turn) => {
        let k = 0;
        const put = (e) => {
            const share = (0.31 * (turn + 1) + 0.17 * k++) % 1;
            e.value = Number(e.min) + share * (e.max - e.min);
            e.dispatchEvent(new Event("input", { bubbles: true }));
        };
        figure.querySelectorAll("[type=range][data-name]").forEach(put);
        figure.querySelectorAll("select").forEach((e) => {
            e.selectedIndex = (turn + k++) % e.options.length;
            e.dispatchEvent(new Event("input", { bubbles: true }));
        });
        figure.querySelectorAll("table.input td").forEach((cell) => {
            cell.focus();
            if (cell.classList.contains("moves")) put(figure.querySelector(".mover [type=number]"));
        });
    }"""
    figure.evaluate(script, turn)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_numbers_are_those_of_the_package(page, name):
    figure = page.locator(f"[data-live={name}]")
    first = shown(figure)
    assert "undefined" not in figure.inner_text()
    agrees(first, FORMULAS[name](**settings(figure)))
    for turn in range(4):
        move(figure, turn)
        agrees(shown(figure), FORMULAS[name](**settings(figure)))
    figure.locator("button[type=reset]").click()
    again = shown(figure)
    assert {n: v.tolist() for n, v in again.items()} == {n: v.tolist() for n, v in first.items()}


def test_dropout_drops_what_the_package_drops(page):
    figure = page.locator("[data-live=dropout]")
    for draws, button in ((1, "once"), (101, "often")):
        figure.locator(f"button[data-name={button}]").click()
        numbers = shown(figure)
        agrees(numbers, dropout(**settings(figure), u=numbers["u"], draws=draws))
    assert abs(numbers["mean of draws"] - numbers["x"]).max() < 4.0


CURVATURE = np.array([1.0, 100.0])


def valley(steps, descentRate, adamRate, beta1, beta2):
    """Return what the package's two optimizers give after some steps in the chapter's valley."""
    begin = np.array([-4.0, 1.0])
    descent, adam = {"theta": begin.copy()}, {"theta": begin.copy()}
    sgd = nf.SGD(descent, lr=descentRate)
    optimizer = nf.Adam(adam, lr=adamRate, betas=(beta1, beta2))
    for _ in range(steps):
        sgd.step({"theta": CURVATURE * descent["theta"]})
        optimizer.step({"theta": CURVATURE * adam["theta"]})
    numbers = {"t": steps}
    for name, theta in (("descent", descent["theta"]), ("Adam", adam["theta"])):
        numbers[f"{name}, theta"] = theta
        numbers[f"{name}, gradient"] = CURVATURE * theta
        numbers[f"{name}, loss"] = 0.5 * CURVATURE @ theta**2
    return numbers


def press(figure, name):
    figure.locator(f"button[data-name={name}]").click()


def test_both_optimizers_step_as_the_package_does(page):
    figure = page.locator("[data-live=adam]")
    press(figure, "start")
    agrees(shown(figure), valley(0, **settings(figure)))
    for steps, button in ((1, "step"), (11, "steps"), (21, "steps")):
        press(figure, button)
        agrees(shown(figure), valley(steps, **settings(figure)))


def set_rate(figure, name, rate):
    change = """(input, rate) => {
        input.value = rate;
        input.dispatchEvent(new Event("input", { bubbles: true }));
    }"""
    figure.locator(f"input[data-name={name}]").first.evaluate(change, rate)


def test_a_new_learning_rate_begins_both_paths_anew(page):
    figure = page.locator("[data-live=adam]")
    figure.locator("button[type=reset]").click()
    for name, rate in (("descentRate", 0.005), ("adamRate", 0.4), ("beta1", 0.5)):
        set_rate(figure, name, rate)
        steps = int(shown(figure)["t"].item())
        assert steps > 0
        agrees(shown(figure), valley(steps, **settings(figure)))


@pytest.mark.parametrize(
    ("rate", "word"),
    [(0.01, "converges"), (0.019, "converges"), (0.02, "does not settle"), (0.021, "diverges")],
)
def test_the_valley_says_whether_descent_converges(page, rate, word):
    figure = page.locator("[data-live=adam]")
    set_rate(figure, "descentRate", rate)
    assert word in figure.locator("[role=status]").inner_text()


def test_a_chapter_has_a_picture_of_its_own_below_a_still_one():
    assert len(CHAPTERS) >= 14
    assert set(CHAPTERS) == {*FORMULAS, "dropout", "adam"}
    known = set(re.findall(r"^PICTURES\.([a-z_]+) = ", script(), re.MULTILINE))
    assert known == set(CHAPTERS)
    for name, chapter in CHAPTERS.items():
        before = (DOCS / "chapters" / f"{chapter}.md").read_text("utf-8").partition("<!-- live")[0]
        assert "![" in before, f"{name}: what do readers without JavaScript see?"
    assert FIGURE.format("softmax") in place_figures("<!-- live: softmax -->\n")
