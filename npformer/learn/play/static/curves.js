// The curves of all runs: what they share in one chart, what a layer does in its own.

import { fullShare, shareLabel } from "./axes.js";
import { colourOfDepth, lineChart, smoothed } from "./charts.js";
import { choice, el, fill, number } from "./dom.js";
import { lowest } from "./fitting.js";
import { colour, layersOf, nameOfRun, perEpoch, short, store } from "./store.js";

const DASH = [5, 3];
const PARTS = [["0", "the whole run"], ["0.5", "its last half"], ["0.8", "its last fifth"]];
const COLUMNS = [
  ["epoch", ({ epoch }) => epoch], ["step", ({ step }) => step],
  ["training loss", ({ train_loss, loss }) => number(train_loss ?? loss)], ["validation loss", ({ validation_loss }) => number(validation_loss)],
  ["training accuracy", ({ train_accuracy }) => fullShare(train_accuracy ?? null)], ["validation accuracy", ({ accuracy }) => fullShare(accuracy)],
];

const HIGH = 0.85;
const BASELINE = "always the most frequent label";

// Near 100 % small differences count: the axis of errors shows them.
const stretched = (lines) => lines.every(({ name, points }) => name === BASELINE || points.at(-1)[1] >= HIGH) ? "error" : "even";

const SMALL = 0.1;

// A loss that has come to a tenth of its first one shows its differences on an axis of powers.
function steep(lines) {
  const most = Math.max(...lines.flatMap(({ points }) => points.map(([, y]) => y)), 0);
  const now = Math.max(...lines.filter(({ faint }) => !faint).map(({ points }) => points.at(-1)[1]));
  return lines.length && now < SMALL * most ? "log" : "even";
}

export function curves(over = false) { // over: what has no point gets none
  const loss = lineChart("Loss", "How wrong the model is: dashed on samples that it trains on, solid on samples that it never trains on (validation). Where the solid line turns up, at the ring, the model begins to memorize. Faint: each batch, with dropout if there is any.",
    { scales: ["even", "log"], prefer: steep, height: 230, empty: "appears after the first steps" });
  const accuracy = lineChart("Accuracy", "Share of right answers: dashed on training samples, solid on validation samples, after each epoch.",
    { scales: ["error", "even"], prefer: stretched, height: 230, format: fullShare, axis: shareLabel, empty: "appears after the first epoch" });
  const rate = lineChart("Learning rate", "How far one step may move a weight.");
  const part = choice(PARTS, "0", { class: "part", "aria-label": "part of the run that the curves show", onchange: () => draw() });
  const numbers = el("details", { class: "numbers", ontoggle: () => draw() }, el("summary", {}, "The numbers, epoch by epoch"), el("div", { class: "scroll" }));
  const each = el("div", { class: "plots of-run" });
  const node = el("div", {},
    el("p", { class: "line" }, el("label", {}, "The curves show ", part)),
    el("div", { class: "plots large" }, loss.node, accuracy.node), numbers, el("div", { class: "plots" }, rate.node), each);
  let charts = [];
  let made = null;

  function make() {
    const key = store.runs.map((run) => run.run + nameOfRun(run)).join();
    if (key === made) return;
    made = key;
    charts = store.runs.map((run) => {
      const whose = store.runs.length > 1 ? ` · ${nameOfRun(run)}` : "";
      return [
        lineChart(`Gradient norm of each layer${whose}`, "How strongly the loss pulls at each layer's weights. Blue is near the input, orange near the answer.", { scales: ["log", "even"], empty: "appears after the first steps" }),
        lineChart(`Dead units${whose}`, "Share of units of each activation that are 0 for the whole batch: they learn nothing from it.", { floor: [0, 0.02], empty: "appears after a few seconds", format: fullShare, axis: shareLabel }),
      ];
    });
    fill(each, ...charts.flat().map((chart) => chart.node));
  }

  // An accuracy says little beside that of one answer for all.
  function baseline(lines) {
    const { alone } = store.runs[0] ?? {};
    const last = Math.max(0, ...lines.flatMap(({ points }) => points.map(([x]) => x)));
    return alone && last ? [{ name: BASELINE, colour: "var(--soft)", points: [[0, alone], [last, alone]] }] : [];
  }

  const of = (run, value) => (store.points[run.run] ?? []).filter((point) => value(point) !== null && value(point) !== undefined)
    .map((point) => [point.step, value(point)]);
  const lines = (name, value, more = () => ({})) => store.runs.map((run, k) => ({
    name: store.runs.length > 1 ? `${nameOfRun(run)}, ${name}` : name, colour: colour(k), points: of(run, value), ...more(run),
  })).filter(({ points }) => points.length);

  // Where the validation loss was least.
  function ring(run) {
    const best = lowest(store.points[run.run] ?? []);
    return { mark: best ? [best.step, best.validation_loss] : null };
  }

  // What the model was trained with: measured after epochs, or else the running mean of its batches.
  function trainingLoss() {
    const measured = lines("training", (point) => point.train_loss, () => ({ dash: DASH }));
    if (measured.length) return measured;
    return store.runs.map((run, k) => {
      const points = of(run, (point) => point.loss);
      return { name: store.runs.length > 1 ? `${nameOfRun(run)}, training` : "training", colour: colour(k), dash: DASH, points: run.by_epoch ? points : smoothed(points) };
    }).filter(({ points }) => points.length);
  }

  function draw() {
    node.hidden = !store.runs.length;
    if (node.hidden) return;
    make();
    const last = Math.max(0, ...store.runs.map((run) => store.points[run.run]?.at(-1)?.step ?? 0));
    const lengths = new Set(store.runs.map(perEpoch));
    const view = { from: Number(part.value) ? Math.floor(Number(part.value) * last) : null, perEpoch: lengths.size === 1 ? [...lengths][0] : null };
    const batches = lines("batch", (point) => point.loss, (run) => ({ faint: true, hidden: run.by_epoch })).filter(({ hidden }) => !hidden);
    loss.draw([...batches, ...trainingLoss(), ...lines("validation", (point) => point.validation_loss, ring)], view);
    const right = [...lines("training", (point) => point.train_accuracy, () => ({ dash: DASH })), ...lines("validation", (point) => point.accuracy)];
    const wrong = lines("validation", (point) => point.validation_loss);
    accuracy.node.hidden = !right.length && (over || wrong.length > 0); // what says a number has no accuracy
    accuracy.draw(view.from === null ? [...right, ...baseline(right)] : right, view);
    rate.draw(lines("learning rate", (point) => point.lr), view);
    store.runs.forEach((run, r) => drawLayers(run, ...charts[r], view));
    if (numbers.open) fill(numbers.lastChild, store.runs.map(table));
  }

  function drawLayers(run, norms, dead, view) {
    const layers = layersOf(run, "norms");
    const series = layers.map((name, k) => ({ name: short(name, layers), colour: colourOfDepth(k, layers.length), points: of(run, (point) => point.norms?.[k]) }));
    norms.node.hidden = over && !series.some(({ points }) => points.length);
    norms.draw(series, view);
    const n = store.points[run.run]?.findLast((point) => point.dead)?.dead.length ?? 0;
    dead.node.hidden = run.settings.activation !== "relu" || (over && !n);
    if (!dead.node.hidden) dead.draw(Array.from({ length: n }, (_, k) => ({ name: `layer ${k + 1}`, colour: colourOfDepth(k, n), points: of(run, (point) => point.dead?.[k]) })), view);
  }

  function table(run) {
    const rows = (store.points[run.run] ?? []).filter((point) => typeof point.validation_loss === "number");
    return el("table", {}, el("caption", {}, nameOfRun(run)),
      el("thead", {}, el("tr", {}, COLUMNS.map(([name]) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((point) => el("tr", {}, COLUMNS.map(([, value]) => el("td", {}, String(value(point))))))));
  }
  return { node, draw };
}
