// "See a step": the way of one sample through the model, forward and then backward.

import { ask } from "./api.js";
import { bars, button, el, fill, latest, number, tell, visible } from "./dom.js";
import { sampleRow } from "./samples.js";
import { scrolling } from "./scrolling.js";
import { keyOf, store, trains } from "./store.js";
import { heatMap, idsCard, tensorCard } from "./tensors.js";
import { nothing } from "./try.js";
import { weightPanel } from "./weight.js";

const AT_ONCE = 12;

export function stepView(root) {
  const samples = sampleRow((index) => {
    chosen = index;
    fill(weight);
    look().catch(tell);
  });
  const outcome = el("div", { class: "outcome" });
  const map = el("div", { class: "map" });
  const frame = scrolling(map, "the diagram");
  const detail = el("article", { class: "card detail" });
  const weight = el("div");
  const stale = el("p", { class: "about", role: "status" });
  let key = null;
  let start = 0;
  let chosen = 0; // the sample
  let boxes = []; // forward, then backward
  let now = 0;
  let seenAt = null; // the run's step
  let at = null; // the step whose weights are shown; null: the newest
  let wrong = null; // a sample that the model gets wrong
  const known = {}; // samples by their index
  const past = el("input", { type: "range", min: 0, step: 1, id: "at", "aria-label": "step of the training" });
  const when = el("output", { class: "readout" });
  let kept = []; // steps
  const travel = latest(async () => {
    at = Number(past.value) === kept.length - 1 ? null : kept[past.value];
    fill(weight);
    await look();
  });
  past.addEventListener("input", travel);

  async function show() {
    const run = store.run;
    if (keyOf(run) === null) return void ((key = null), fill(root, nothing()));
    if (key !== keyOf(run)) {
      key = keyOf(run);
      [start, chosen, now, at, wrong] = [0, null, 0, null, null];
      fill(weight);
      fill(root,
        el("section", { class: "card" }, el("h2", {}, "One sample on its way"),
          el("p", { class: "about" }, "Choose a sample. It goes forward through every layer to an answer; the loss says how wrong the answer is; then the gradient of the loss goes back through the same layers, last one first. It begins with a sample that the model gets wrong, if there is one. Each picture has its scale below it, in the box that you choose."),
          samples.node, samples.score,
          el("p", { class: "line" },
            button("Other samples", async () => ((start += AT_ONCE), await list(), await judge())),
            button("Look again", () => ((at = null), look()), { id: "again" }), stale),
          el("p", { class: "line travel" }, el("label", { for: "at" }, "Weights after step"), past, when), outcome),
        frame.node, detail, weight);
      await list().catch(tell);
    }
    await look().catch(tell);
  }

  async function list() {
    const found = await ask(store.run.run, "samples", { start, n: AT_ONCE });
    if (start >= found.total) start = 0;
    let shown = found.samples;
    if (chosen === null) {
      wrong = found.wrong;
      chosen = wrong ?? 0;
      if (!shown.some(({ index }) => index === chosen)) shown = [...(await ask(store.run.run, "samples", { start: chosen, n: 1 })).samples, ...shown];
    }
    for (const sample of shown) known[sample.index] = sample;
    samples.draw(shown, chosen);
  }

  async function look() {
    const run = store.run;
    const found = await ask(run.run, "step", { sample: chosen ?? 0, ...moment() });
    kept = found.kept;
    [past.max, past.value, past.disabled] = [kept.length - 1, kept.indexOf(found.step), kept.length < 2];
    when.textContent = String(found.step);
    past.setAttribute("aria-valuetext", `step ${found.step}`);
    seenAt = found.step ?? run.step;
    boxes = [...found.forward.map((box) => ({ ...box, way: "forward" })), ...found.backward.map((box) => ({ ...box, way: "backward" }))];
    now = Math.min(now, boxes.length - 1);
    fill(outcome, el("p", {}, "Loss ", el("b", { id: "loss" }, number(found.loss)), `: minus the logarithm of the probability that the right answer`, known[chosen]?.label ? [", ", el("b", { id: "right" }, known[chosen].label), ","] : null, ` got${["text", "pair"].includes(run.kind_of_input) ? ", averaged over all tokens. What it expects at the end:" : "."}`),
      bars(found.prediction.slice(0, 5).map((each, k) => ({ name: visible(each.class), p: each.p, best: k === 0 }))));
    drawMap(found.forward);
    choose(now);
    note();
    await judge();
  }

  const moment = () => (at === null ? {} : { at });
  const judge = async () => samples.tell((await ask(store.run.run, "predictions", { samples: samples.indices(), ...moment() })).predictions);

  const note = () => (stale.textContent = at === null && trains(store.run) ? "The training goes on meanwhile: “Look again” shows the newest weights." : "");

  // The diagram: a column for each depth, and the gradient of each array at its place below.
  function drawMap(forward) {
    const depth = [], row = [], taken = new Set();
    for (const { node, before, title } of forward) {
      depth[node] = before.length ? Math.max(...before.map((k) => depth[k])) + 1 : 1;
      row[node] = { Q: 2, S: 2, A: 2, V: 4 }[title] ?? 3;
      while (taken.has(`${depth[node]} ${row[node]}`)) row[node] += 4;
      taken.add(`${depth[node]} ${row[node]}`);
    }
    const rows = Math.max(...row);
    const items = boxes.map((box, k) => el("button", {
      type: "button", class: box.way, "data-k": k, "data-node": box.node, title: `${box.title}: ${box.about}, ${box.layer}`,
      style: `grid-row:${row[box.node] + (box.way === "forward" ? 0 : rows)};grid-column:${depth[box.node]}`,
      onclick: () => choose(k),
    }, heatMap(box.output, { width: 48, weights: box.title === "A" }), el("span", {}, box.title)));
    const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    fill(map, lines,
      el("p", { class: "way", style: "grid-row:1" }, "Forward →"), el("p", { class: "way", style: `grid-row:${rows + 1}` }, "← Backward: gradients"), ...items);
    lines.setAttribute("aria-hidden", "true");
    lines.setAttribute("width", map.scrollWidth);
    lines.setAttribute("height", map.scrollHeight);
    frame.update();
    for (const way of ["forward", "backward"]) {
      const at = (node) => map.querySelector(`.${way}[data-node="${node}"]`);
      for (const { node, before } of forward) for (const from of before) join(lines, at(from), at(node), way === "backward");
    }
  }

  // A line from one box to another: around those between, or through the gap before it.
  function join(lines, a, b, back) {
    if (!a || !b) return;
    const [left, right] = [a.offsetLeft + a.offsetWidth, b.offsetLeft];
    const [y, to] = [a, b].map((each) => each.offsetTop + each.offsetHeight / 2);
    const over = a.offsetTop === b.offsetTop && right - left > 40;
    const up = Math.max(8, a.offsetTop - a.offsetHeight - 14); // above the branches
    const [from, into] = [left - a.offsetWidth / 2, right + b.offsetWidth / 2];
    const points = over ? [[from, a.offsetTop], [from, up], [into, up], [into, b.offsetTop]]
      : [[left, y], [right - 9, y], [right - 9, to], [right, to]];
    if (back) points.reverse();
    const [[x1, y1], [x2, y2]] = points.slice(-2);
    const [dx, dy] = [Math.sign(x2 - x1), Math.sign(y2 - y1)];
    const path = document.createElementNS(lines.namespaceURI, "path");
    path.setAttribute("d", `M${points.join("L")}m${-4 * dx - 3 * dy} ${-4 * dy - 3 * dx}L${x2} ${y2}l${-4 * dx + 3 * dy} ${-4 * dy + 3 * dx}`);
    path.setAttribute("class", over ? "over" : "");
    lines.append(path);
  }

  function choose(k) {
    now = Math.min(Math.max(k, 0), boxes.length - 1);
    const box = boxes[now];
    if (!box) return;
    for (const each of map.querySelectorAll("button")) each.ariaCurrent = each.dataset.k === String(now) ? "true" : null;
    const here = map.querySelector("[aria-current]");
    map.scrollTo({ left: here.offsetLeft - map.clientWidth / 2 + 30 });
    const back = box.way === "backward";
    const names = { nHeads: store.run.settings.n_heads, words: store.run.kind_of_input === "pair" ? null : known[chosen]?.words };
    const card = (tensor) => tensorCard(tensor, { names });
    fill(detail,
      el("div", { class: "line head" },
        button("◀", () => choose(now - 1), { "aria-label": "previous box", disabled: now === 0 }),
        el("h3", {}, box.title), el("span", {}, back ? `the gradient of ${box.title.slice(1).trim()}` : box.about), el("code", {}, box.layer),
        el("small", {}, `${box.way}, ${now + 1} of ${boxes.length}`),
        button("▶", () => choose(now + 1), { "aria-label": "next box", disabled: now === boxes.length - 1 })),
      el("div", { class: "flow" },
        el("div", { class: "inputs" }, box.inputs.map((each) => (each.whole ? idsCard(each, names.words) : card(each)))),
        el("div", { class: "arrow" }, el("p", { class: "formula" }, box.formula), el("span", { "aria-hidden": "true" }, "→"),
          el("small", {}, `${box.function}, ${box.source}`)),
        box.results.map((each) => (each.name.includes("W") ? tensorCard(each) : card(each))),
        back && box.title === "d embed" ? el("p", { class: "about" }, "The way back ends here, at the weights.") : null),
      box.title.endsWith("+") ? el("p", { class: "about" }, "A residual connection goes around each mixer and each feed-forward network: what goes in is added to what comes out. So its gradient has two ways back, and both are added where they meet.") : null,
      box.parameters.length ? el("section", {},
        el("h4", {}, "Its weights, and the gradient of each"),
        el("p", { class: "about" }, "Click a weight (or go to it with the arrow keys and press Enter) to compute its gradient in three ways."),
        el("div", { class: "parameters" }, box.parameters.map(parameter))) : null,
      box.lines ? el("details", { open: true }, el("summary", {}, `The lines of ${box.function}: ${box.source}`), box.summary ? el("p", { class: "formula summary" }, box.summary) : null, el("pre", {}, el("code", {}, box.lines))) : null);
  }

  function parameter({ name, tensor, gradient }) {
    const pick = (index) => inspect(name, tensor.shape, index);
    return el("div", { class: "parameter" },
      tensorCard(tensor, { title: name.split(".").slice(-2).join("."), pick, width: 180 }),
      gradient ? tensorCard(gradient, { title: "its gradient", pick, width: 180 }) : null);
  }

  // The cell of the picture as an index into the tensor: the first matrix of a stack is shown.
  function inspect(name, shape, [i, j]) {
    const index = shape.length === 1 ? [j] : [...new Array(Math.max(0, shape.length - 2)).fill(0), i, j];
    fill(weight, weightPanel(store.run.run, name, shape, index, chosen, at));
    weight.firstChild.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !event.target.matches("input, select, canvas") && boxes.length) (event.preventDefault(), choose(now + by));
  });
  return {
    show,
    update: (event) => {
      if (event.kind === "runs" && keyOf(store.run) !== key) show();
      else if (event.kind === "runs" && seenAt !== null && key !== null) note();
    },
  };
}
