// The exported page: a run's settings and curves, samples, and its model, which runs here.

import { answers } from "./answers.js";
import { curves } from "./curves.js";
import { digitView } from "./digit.js";
import { bars, button, el, fill } from "./dom.js";
import { nameOfRun, store } from "./store.js";
import { heatMap, mixingGrid, shapeOf } from "./tensors.js";
import { wordsView } from "./words.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { run } = data;
const ask = data.model ? answers(data) : null;
const MOST = 12; // classes
const $ = (id) => document.getElementById(id);

function about() {
  const { model, accuracy, ...facts } = data.facts; // the last ones are shown below
  const found = Object.entries({ ...run.settings, ...facts }).filter(([, value]) => value !== null && value !== "");
  return el("section", { class: "card", id: "settings" },
    el("h2", {}, "The run"),
    el("p", { class: "about" }, "The settings that the model was built and trained with, and what is known about it."),
    el("dl", { class: "facts" }, found.map(([name, value]) =>
      el("div", {}, el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, Array.isArray(value) ? value.join(", ") : String(value))))));
}

function trained() {
  store.setRuns([run]);
  store.addPoints(run.run, data.points);
  const plots = curves(true);
  if (data.points.length) plots.draw();
  return { node: el("section", { id: "curves", hidden: !data.points.length }, el("h2", {}, "How it was trained"), plots.node), draw: plots.draw };
}

// Probabilities with their classes, the largest marked; of many classes, the most probable ones.
function itemsOf(probabilities) {
  const items = probabilities.map((p, k) => ({ name: run.classes?.[k] ?? String(k), p, best: p === Math.max(...probabilities) }));
  return items.length > MOST ? items.sort((a, b) => b.p - a.p).slice(0, MOST) : items;
}

// Samples, each with what the model says about it: computed here or, if it does not run here, when the page was written.
function samples() {
  const shown = el("div", { class: "two" });
  const chosen = el("div", { class: "samples" });
  async function choose(sample) {
    [...chosen.children].forEach((node, k) => (node.ariaPressed = String(data.samples[k] === sample)));
    const found = sample.answer ?? (await ask("sample", { sample: sample.index }));
    const items = found.items ?? itemsOf(found.probabilities);
    const best = items.find((item) => item.best)?.name ?? "–";
    const tokens = sample.words ?? sample.x?.map((_, t) => `token ${t + 1}`);
    const groups = found.groups ?? [{ title: null, rows: tokens, columns: tokens, mixing: found.mixing }];
    const grids = groups.flatMap(({ title, rows, columns, mixing }) => [title ? el("h3", {}, title) : null, ...mixingGrid(mixing, rows, columns)]);
    fill(shown,
      el("div", {},
        sample.text ? el("p", {}, sample.text) : null,
        el("p", { class: "answer" },
          found.says ?? [found.last ? "For the last token the model says " : "The model says ", el("b", {}, best), "."],
          sample.label === null ? null : ` The right answer is ${sample.label}.`),
        bars(items)),
      el("div", { class: "layers" }, grids));
  }
  fill(chosen, ...data.samples.map((sample) => {
    const picture = sample.image ? heatMap(sample.image, { width: 56, ink: true }) : el("span", { class: "words" }, sample.text ?? shapeOf(sample));
    return button([picture, el("small", {}, sample.label ?? "")], () => choose(sample), { "aria-pressed": "false" });
  }));
  if (data.samples.length) choose(data.samples[0]);
  return el("section", { class: "card", id: "samples", hidden: !data.samples.length },
    el("h2", {}, "Samples"),
    el("p", { class: "about" }, "Choose one: below you see what the model says, and the attention weights of every layer and head. Row i of a matrix has the weights of token i: yellow is the greatest, dark blue the least; if some are negative, orange is above 0 and blue below."),
    chosen, shown);
}

const says = data.model?.arguments.output !== "mean_squared_error"; // classes, of which there are probabilities
const viewOf = () => (run.kind_of_input === "image" ? digitView : data.tokens ? wordsView : null);
const view = ask && says && viewOf() ? viewOf()(ask, run, data.samples.length > 0) : null;
const plots = trained();
document.title = `${run.settings.task}, ${nameOfRun(run)}: a model of npformer`;
fill($("title"), `${run.settings.task}, ${nameOfRun(run)}`);
fill(document.querySelector("main"),
  data.bug ? el("section", { class: "card bug", id: "bug", role: "alert" },
    el("h2", { class: "wrong" }, `This model has a bug: ${data.bug.title}`),
    el("p", {}, el("b", {}, "Why it is wrong. "), data.bug.why), el("p", {}, el("b", {}, "What it costs. "), data.bug.cost)) : null,
  view ? el("p", { class: "lead" }, `A small Transformer, trained with npformer, runs in this page: ${data.facts.parameters} numbers and the formulas that use them. `,
    run.kind_of_input === "image" ? "Draw a digit, and see what it reads, with its attention weights." : "Write a sentence, and see what it says, with its attention weights.") : null,
  data.facts.model ? el("p", { class: "lead", id: "which" }, `This model is ${data.facts.model}: its own differ a little.`) : null,
  data.facts.accuracy ? el("p", { class: "lead", id: "accuracy" }, `${data.facts.model ? "Together they are" : "It is"} ${data.facts.accuracy}.`) : null,
  data.model ? null : el("section", { class: "card", id: "still" },
    el("p", {}, el("b", {}, "This model does not run by itself on this page: "), data.why, " What you see was computed when the page was written.")),
  view ? el("section", { id: "try" }, view.node) : null,
  samples(), plots.node, about());
view?.renew();
plots.draw();
$("message").querySelector("button").addEventListener("click", () => ($("message").hidden = true));
const again = () => (plots.draw(), view?.renew());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
addEventListener("resize", () => plots.draw());
