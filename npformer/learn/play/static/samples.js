// Some samples in a row: what each is, and what the model says about it.

import { el, fill } from "./dom.js";
import { scrolling } from "./scrolling.js";
import { spoken, store } from "./store.js";
import { heatMap } from "./tensors.js";

export function sampleRow(choose) {
  const row = el("div", { class: "samples", role: "group", "aria-label": "samples" });
  const frame = scrolling(row, "the samples");
  const score = el("p", { class: "about", role: "status", id: "score" });
  let shown = [];

  function draw(samples, chosen) {
    shown = samples;
    fill(row, ...samples.map((sample) => el("button", {
      type: "button", "data-sample": sample.index, "aria-pressed": String(sample.index === chosen),
      onclick: () => {
        for (const each of row.children) each.ariaPressed = String(each.dataset.sample === String(sample.index));
        choose(sample.index);
      },
    },
    sample.image ? heatMap(sample.image, { width: 44, ink: true }) : el("span", { class: "words" }, spoken(store.run, sample.words)),
    sample.label === null ? null : el("small", { class: "label" }, "label ", el("b", {}, sample.label)),
    el("small", { class: "said" }))));
    const here = row.querySelector("[aria-pressed=true]");
    if (here) row.scrollTo({ left: here.offsetLeft + here.offsetWidth / 2 - row.clientWidth / 2 });
    frame.update();
  }

  // A mark, a word and a frame say what is right and what is wrong, besides the colour.
  function tell(predictions) {
    let [right, known] = [0, 0];
    shown.forEach((sample, k) => {
      const [button, prediction] = [row.children[k], predictions[k]];
      const said = button.querySelector(".said");
      if (prediction === null || sample.label === null) return void fill(said);
      const isRight = prediction === sample.label;
      right += isRight;
      known += 1;
      fill(said, `${isRight ? "✓" : "✗"} says `, el("b", {}, prediction));
      said.className = `said ${isRight ? "right" : "wrong"}`;
      button.classList.toggle("is-wrong", !isRight);
      button.setAttribute("aria-label", `sample ${sample.index}: label ${sample.label}, the model says ${prediction}, ${isRight ? "right" : "wrong"}`);
    });
    frame.update();
    score.textContent = known ? `The model is right about ${right} of these ${known}: ✓ is right; ✗, in a dashed frame, is wrong.` : "";
  }
  return { node: frame.node, score, draw, tell, indices: () => shown.map(({ index }) => index) };
}
