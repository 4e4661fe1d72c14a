// From one sequence to another: the three attentions of an encoder-decoder.

import { button, debounce, el, field, fill, latest } from "./dom.js";
import { spoken } from "./store.js";
import { mixingGrid } from "./tensors.js";

export function translateView(ask, run) {
  const input = el("input", { type: "text", id: "source", spellcheck: "false" });
  const target = el("p", { class: "answer", role: "status" });
  const maps = el("div", { class: "three" });
  const PARTS = [
    ["encoder", "Source reads source", "The encoder: the weights of source tokens for each source token.", (found) => [found.source, found.source]],
    ["decoder", "Target reads target", "The decoder, causal: a token sees only itself and those before it, so there is nothing above the diagonal.", (found) => [found.written, found.written]],
    ["cross", "Target reads source", "Cross-attention: the weights of source tokens for each written token. In a reversal this is the other diagonal.", (found) => [found.written, found.source]],
  ];
  const think = latest(async () => {
    if (!input.value.trim()) return void (fill(maps), fill(target, "An empty box. Write something in it."));
    const found = await ask("translate", { source: input.value });
    fill(target, "The model writes ", el("b", {}, spoken(run, found.target)), ".");
    found.written = found.read ?? found.target;
    fill(maps, ...PARTS.map(([name, title, about, names]) =>
      el("section", { class: "card" }, el("h3", {}, title), el("p", { class: "about" }, about), ...mixingGrid(found.attentions[name], ...names(found)))));
  });
  input.addEventListener("input", debounce(think));
  const sample = async () => {
    const { samples } = await ask("samples", { start: Math.floor(Math.random() * 50), n: 1 });
    if (samples[0]?.words) input.value = spoken(run, samples[0].words);
    await think();
  };
  sample().catch(() => {});
  const node = el("div", {},
    el("section", { class: "card" },
      el("h2", {}, "From one sequence to another"),
      field("Source", input), el("p", { class: "line" }, button("Take one from the data", sample)), target),
    maps);
  return { node, renew: think };
}
