// The curves of all runs: what they share in one chart, what a layer does in its own.

import { colourOfDepth, lineChart, smoothed } from "./charts.js";
import { el, fill, percent } from "./dom.js";
import { colour, nameOfRun, short, store } from "./store.js";

const whole = (share) => `${Number((100 * share).toPrecision(2))} %`;

export function curves(over = false) { // over: what has no point gets none
  const loss = lineChart("Loss", "How wrong the model is on the batches that it trains on: 0 would be certain and right.");
  const accuracy = lineChart("Validation accuracy", "Share of right answers on samples that it never trains on, after each epoch.",
    { low: 0, high: 1, format: percent, axis: whole, empty: "appears after the first epoch" });
  const validation = lineChart("Validation loss", "The same on data that it never trains on, after each epoch. Where it rises again, the model only memorises.");
  const rate = lineChart("Learning rate", "How far one step may move a weight.");
  const each = el("div", { class: "plots of-run" });
  const node = el("div", {}, el("div", { class: "plots" }, loss.node, accuracy.node, validation.node, rate.node), each);
  let charts = [];
  let made = null;

  function make() {
    const key = store.runs.map((run) => run.run + nameOfRun(run)).join();
    if (key === made) return;
    made = key;
    charts = store.runs.map((run) => {
      const whose = store.runs.length > 1 ? ` · ${nameOfRun(run)}` : "";
      return [
        lineChart(`Gradient norm of each layer${whose}`, "How strongly the loss pulls at each layer's weights. Blue is near the input, orange near the answer.", { log: true }),
        lineChart(`Dead units${whose}`, "Share of units of each activation that are 0 for the whole batch: they learn nothing from it.", { low: 0, high: 0.02, empty: "appears after a few seconds", format: percent, axis: whole }),
      ];
    });
    fill(each, ...charts.flat().map((chart) => chart.node));
  }

  // An accuracy says little beside that of one answer for all.
  function withBaseline(right) {
    const { alone } = store.runs[0] ?? {};
    const last = Math.max(0, ...right.flatMap(({ points }) => points.map(([x]) => x)));
    return alone && last ? [...right, { name: "always the most frequent label", colour: "var(--soft)", points: [[0, alone], [last, alone]] }] : right;
  }

  function draw() {
    node.hidden = !store.runs.length;
    if (node.hidden) return;
    make();
    const of = (run, value) => (store.points[run.run] ?? []).filter((point) => value(point) !== null && value(point) !== undefined)
      .map((point) => [point.step, value(point)]);
    const lines = (value) => store.runs.map((run, k) => ({ name: nameOfRun(run), colour: colour(k), points: of(run, value) }));
    const right = lines((point) => point.accuracy);
    const wrong = lines((point) => point.validation_loss);
    const any = (series) => series.some(({ points }) => points.length);
    const none = !any(right) && (over || any(wrong)); // what says a number has no accuracy
    [accuracy.node.hidden, validation.node.hidden] = [none, !none || !any(wrong)];
    const raw = lines((point) => point.loss);
    const mean = (line, k) => ({ ...line, points: store.runs[k].by_epoch ? line.points : smoothed(line.points) }); // of an epoch already
    loss.draw([...raw.map((line) => ({ ...line, faint: true })), ...raw.map(mean)]);
    if (none) validation.draw(wrong);
    else accuracy.draw(withBaseline(right));
    rate.draw(lines((point) => point.lr));
    store.runs.forEach((run, r) => {
      const layers = run.layers ?? [];
      const norms = layers.map((name, k) => ({ name: short(name, layers), colour: colourOfDepth(k, layers.length), points: of(run, (point) => point.norms?.[k]) }));
      charts[r][0].node.hidden = over && !any(norms);
      const n = store.points[run.run]?.findLast((point) => point.dead)?.dead.length ?? 0;
      charts[r][1].node.hidden = run.settings.activation !== "relu" || (over && !n);
      charts[r][0].draw(norms);
      if (charts[r][1].node.hidden) return;
      charts[r][1].draw(Array.from({ length: n }, (_, k) => ({ name: `layer ${k + 1}`, colour: colourOfDepth(k, n), points: of(run, (point) => point.dead?.[k]) })));
    });
  }
  return { node, draw };
}
