// Write a sentence: which words take from which, and which outputs move when one word changes.

import { bars, button, debounce, el, field, fill, latest } from "./dom.js";
import { movedTable } from "./digit.js";
import { mixingGrid } from "./tensors.js";

const FIRST = { sentences: "The food was not good at all, but the service was great." };

export function wordsView(ask, run) {
  const input = el("textarea", { rows: 2, id: "sentence", spellcheck: "false" });
  input.value = FIRST[run.settings.task] ?? "";
  const answer = el("p", { class: "answer", role: "status" });
  const probabilities = el("div");
  const tokens = el("div", { class: "tokens", role: "group", "aria-label": "tokens" });
  const mixing = el("div", { class: "layers" });
  const to = el("input", { type: "text", size: 12, value: "terrible", id: "word", "aria-label": "the new token" });
  const moved = el("div");
  let words = [];
  let position = 0;

  const think = latest(async () => {
    if (!input.value.trim()) return;
    const found = await ask("sentence", { text: input.value });
    words = found.tokens;
    position = Math.min(position, words.length - 1);
    const p = found.probabilities;
    const best = p.indexOf(Math.max(...p));
    fill(answer, "The model says ", el("b", {}, found.classes?.[best] ?? String(best)), ".");
    fill(probabilities, bars(p.map((each, k) => ({ name: found.classes?.[k] ?? k, p: each, best: k === best })).slice(0, 12)));
    chips();
    fill(mixing, ...mixingGrid(found.mixing, words));
  });
  function chips() {
    fill(tokens, ...words.map((word, k) =>
      el("button", { type: "button", "aria-pressed": String(k === position), onclick: () => ((position = k), chips()) }, word)));
  }
  input.addEventListener("input", debounce(think, 150));
  const sample = async () => {
    const { samples } = await ask("samples", { start: Math.floor(Math.random() * 100), n: 1 });
    if (samples[0]?.words) input.value = samples[0].words.join(" ");
    await think();
  };
  const edit = button("Change it", async () => {
    const found = await ask("edit", { text: input.value, position, to: to.value });
    fill(moved, movedTable(found.moved, words.map((word, k) => (k === position ? to.value : word)), position));
  }, { id: "edit" });
  if (!input.value) sample().catch(() => {});

  const node = el("div", { class: "two" },
    el("section", { class: "card" },
      el("h2", {}, "Write a sentence"),
      field("Your words", input), el("p", { class: "line" }, button("Take one from the data", sample)),
      answer, probabilities,
      el("h3", {}, "Change one token: which outputs move?"),
      el("p", { class: "about" }, "Choose a token and what to put in its place. The table shows, layer by layer, how far the output of each token moves. With a Fourier mixer all move at once. With a causal one, none before the token does."),
      tokens, el("p", { class: "line" }, to, edit), moved),
    el("section", { class: "card" },
      el("h2", {}, "Which words take from which"),
      el("p", { class: "about" }, "Row i of a matrix shows from which tokens the token i takes. Point at a square to read its two words. Deep orange is much, blue is taken with a minus sign."),
      mixing));
  return { node, renew: think };
}
