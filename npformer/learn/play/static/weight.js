// One weight: its gradient in three ways, and the step that Adam would make with it.

import { ask } from "./api.js";
import { el, fill, latest, number } from "./dom.js";
import { plotV } from "./vshape.js";

export function weightPanel(run, name, shape, index, sample, at) {
  const output = el("div", { "aria-live": "polite" });
  let batch = false;
  let chosen = null; // which of the step sizes

  const look = latest(async () => draw(await ask(run, "weight", { name, index, ...(at === null ? {} : { at }), ...(batch ? { batch: true } : { sample }) })));

  const row = (label, value, words, id) =>
    el("tr", {}, el("th", { scope: "row" }, label), el("td", { id }, value), el("td", { class: "about" }, words));

  function draw(found) {
    const { differences, adam } = found;
    const best = differences.reduce((k, each, j) => (Math.abs(each.error) < Math.abs(differences[k].error) ? j : k), 0);
    chosen ??= best;
    const canvas = el("canvas", { class: "v", role: "img", "aria-label": "The error of central differences over the size of their step: a V." });
    const difference = el("td", { id: "difference" });
    const error = el("td", { class: "about" });
    const size = el("output", { class: "readout" });
    const slider = el("input", { type: "range", min: 0, max: differences.length - 1, step: 1, value: chosen, id: "h", "aria-label": "size h of the step" });
    const exact = found.complex_step === null ? null : found.complex_step - found.gradient;
    const show = () => {
      chosen = Number(slider.value);
      const { h, value, error: wrong } = differences[chosen];
      difference.textContent = number(value, 8);
      error.textContent = `(loss(w + h) − loss(w − h)) / 2h with h = ${number(h, 2)}: off by ${number(Math.abs(wrong), 2)}`;
      size.textContent = `h = ${number(h, 2)}`;
      slider.setAttribute("aria-valuetext", size.textContent);
      plotV(canvas, differences, chosen, exact);
    };
    slider.addEventListener("input", show);
    fill(output, el("div", { class: "two" }, el("div", {},
      el("table", { class: "ways" }, el("tbody", {},
        row("Value", number(found.value, 8), "of the weight itself", "value"),
        row("By hand", number(found.gradient, 8), "its gradient by the backward pass that is written out here, in 64 bits", "gradient"),
        el("tr", {}, el("th", { scope: "row" }, "Central difference"), difference, error),
        found.complex_step === null
          ? row("Complex step", "–", found.no_complex_step, "complex")
          : row("Complex step", number(found.complex_step, 8), `the imaginary part of loss(w + ih) / h: it subtracts nothing, so it's off by only ${number(Math.abs(exact), 2)}`, "complex"))),
      adam ? el("h4", {}, "What Adam would do with it now") : null,
      adam ? el("table", { class: "ways" }, el("tbody", {},
        row("m", number(adam.m), "moving average of its gradients", "adam-m"),
        row("v", number(adam.v), "moving average of their squares", "adam-v"),
        row("Step", number(adam.step), `about the learning rate times m / √v${adam.step ? "" : ": the learning rate has come to 0"}`, "adam-step"),
        row("Weight after it", number(adam.after, 8), "value + step", "adam-after"))) : null), el("div", {},
      el("h4", {}, "The V: how large should the step h be?"),
      el("p", { class: "about" }, "Too large a step (right) misses the curve between its two ends. Too small a step (left) loses digits, because two nearly equal losses are subtracted. The best is in between. Move the slider."),
      canvas, el("p", { class: "line" }, slider, size))));
    show();
  }

  const fields = shape.map((n, axis) => el("input", {
    type: "number", min: 0, max: n - 1, value: index[axis], "aria-label": `index ${axis}`,
    oninput: (event) => {
      const k = event.target.valueAsNumber;
      if (Number.isInteger(k) && k >= 0 && k < n) ((index[axis] = k), look());
    },
  }));
  const of = el("select", { "aria-label": "gradient of", onchange: (event) => ((batch = event.target.value === "batch"), look()) },
    el("option", { value: "sample" }, "this sample's loss"), el("option", { value: "batch" }, "the mean loss of 8 samples"));
  look();
  return el("section", { class: "card weight", id: "weight" },
    el("h3", {}, "One weight"),
    el("p", { class: "line" }, el("code", {}, name), "[", fields, "]", " gradient of ", of),
    output);
}
