// "See a step": the way of one sample through the model, forward and then backward.

import { ask } from "./api.js";
import { bars, button, el, fill, number, tell, visible } from "./dom.js";
import { keyOf, spoken, store, trains } from "./store.js";
import { heatMap, tensorCard } from "./tensors.js";
import { nothing } from "./try.js";
import { weightPanel } from "./weight.js";

const AT_ONCE = 12;

export function stepView(root) {
  const samples = el("div", { class: "samples", role: "group", "aria-label": "samples" });
  const outcome = el("div", { class: "outcome" });
  const map = el("div", { class: "map" });
  const detail = el("article", { class: "card detail" });
  const weight = el("div");
  const stale = el("p", { class: "about", role: "status" });
  let key = null;
  let start = 0;
  let chosen = 0; // the sample
  let boxes = []; // forward, then backward
  let now = 0;
  let seenAt = null; // the run's step

  async function show() {
    const run = store.run;
    if (keyOf(run) === null) return void ((key = null), fill(root, nothing()));
    if (key !== keyOf(run)) {
      key = keyOf(run);
      [start, chosen, now] = [0, 0, 0];
      fill(weight);
      fill(root,
        el("section", { class: "card" }, el("h2", {}, "One sample on its way"),
          el("p", { class: "about" }, "Choose a sample. It goes forward through every layer to an answer; the loss says how wrong the answer is; then the gradient of the loss goes back through the same layers, last one first. In all pictures orange is above 0, blue below; the deepest colour is the largest magnitude in that picture."),
          samples,
          el("p", { class: "line" },
            button("Other samples", async () => ((start += AT_ONCE), await list())),
            button("Look again", look, { id: "again" }), stale), outcome),
        map, detail, weight);
      await list().catch(tell);
    }
    await look().catch(tell);
  }

  async function list() {
    const found = await ask(store.run.run, "samples", { start, n: AT_ONCE });
    if (start >= found.total) start = 0;
    fill(samples, ...found.samples.map((sample) => el("button", {
      type: "button", "data-sample": sample.index, "aria-pressed": String(sample.index === chosen),
      onclick: () => {
        chosen = sample.index;
        for (const each of samples.children) each.ariaPressed = String(each.dataset.sample === String(chosen));
        fill(weight);
        look().catch(tell);
      },
    },
    sample.image ? heatMap(sample.image, { width: 44, ink: true }) : el("span", { class: "words" }, spoken(store.run, sample.words)),
    sample.label !== null ? el("small", {}, sample.label) : null)));
  }

  async function look() {
    const run = store.run;
    const found = await ask(run.run, "step", { sample: chosen });
    seenAt = found.step ?? run.step;
    boxes = [...found.forward.map((box) => ({ ...box, way: "forward" })), ...found.backward.map((box) => ({ ...box, way: "backward" }))];
    now = Math.min(now, boxes.length - 1);
    fill(outcome, el("p", {}, "Loss ", el("b", { id: "loss" }, number(found.loss)), `: minus the logarithm of the probability that the right answer got${["text", "pair"].includes(run.kind_of_input) ? ", averaged over all tokens. What it expects at the end:" : "."}`),
      bars(found.prediction.slice(0, 5).map((each, k) => ({ name: visible(each.class), p: each.p, best: k === 0 }))));
    drawMap(found.forward);
    choose(now);
    note();
  }

  const note = () => (stale.textContent = !trains(store.run) ? `Weights after step ${seenAt}.` : `Weights after step ${seenAt}. The training goes on meanwhile: “Look again” shows the newest.`);

  // Each backward box is below the forward box that it belongs to.
  function drawMap(forward) {
    const column = new Map(forward.map((box, k) => [box.layer, k + 1]));
    const n = forward.length;
    const items = boxes.map((box, k) => el("button", {
      type: "button", class: box.way, "data-k": k, title: `${box.title}: ${box.layer}`,
      style: `grid-row:${k < n ? 2 : 4};grid-column:${k < n ? k + 1 : column.get(box.layer) ?? Math.max(1, 2 * n - k)}`,
      onclick: () => choose(k),
    }, box.output ? heatMap(box.output, { width: 48 }) : null, el("span", {}, box.title)));
    fill(map,
      el("p", { class: "way", style: "grid-row:1" }, "Forward →"), el("p", { class: "way", style: "grid-row:3" }, "← Backward: gradients"), ...items);
  }

  function choose(k) {
    now = Math.min(Math.max(k, 0), boxes.length - 1);
    const box = boxes[now];
    if (!box) return;
    for (const each of map.querySelectorAll("button")) each.ariaCurrent = each.dataset.k === String(now) ? "true" : null;
    const here = map.querySelector("[aria-current]");
    map.scrollTo({ left: here.offsetLeft - map.clientWidth / 2 + 30 });
    const tensors = new Map(boxes.filter((each) => each.output).map((each) => [each.output.name, each.output]));
    const inputs = box.inputs.map((input) => (typeof input === "string" ? tensors.get(input) ?? input : input));
    const back = box.way === "backward";
    fill(detail,
      el("div", { class: "line head" },
        button("◀", () => choose(now - 1), { "aria-label": "previous box", disabled: now === 0 }),
        el("h3", {}, box.title), el("code", {}, box.layer),
        el("small", {}, `${back ? "backward" : "forward"}, ${now + 1} of ${boxes.length}`),
        button("▶", () => choose(now + 1), { "aria-label": "next box", disabled: now === boxes.length - 1 })),
      el("div", { class: "flow" },
        el("div", { class: "inputs" }, inputs.map((input) => (typeof input === "string" ? el("p", { class: "about" }, input) : tensorCard(input)))),
        el("div", { class: "arrow" }, el("p", { class: "formula" }, box.formula), el("span", { "aria-hidden": "true" }, "→"),
          el("small", {}, box.function ? `${box.function}, ${box.source}` : box.source ?? "")),
        box.output ? tensorCard(box.output) : el("p", { class: "about" }, "Tokens are row numbers: there is nothing to differentiate. The way back ends here, at the weights.")),
      box.layer.endsWith("_norm") ? el("p", { class: "about" }, "A residual connection goes around each mixer and each feed-forward network: what goes in is added to what comes out. So its gradient has two ways back, and both are added.") : null,
      box.parameters.length ? el("section", {},
        el("h4", {}, "Its weights, and the gradient of each"),
        el("p", { class: "about" }, "Click a weight (or go to it with the arrow keys and press Enter) to check its gradient in four ways."),
        el("div", { class: "parameters" }, box.parameters.map(parameter))) : null,
      box.lines ? el("details", { open: true }, el("summary", {}, `The lines that computed it: ${box.source}`), el("pre", {}, el("code", {}, box.lines))) : null);
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
    fill(weight, weightPanel(store.run.run, name, shape, index, chosen));
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
