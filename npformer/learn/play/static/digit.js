// Draw a digit, and see what the model makes of it.

import { bars, button, el, fill, latest } from "./dom.js";
import { drawingField } from "./draw.js";
import { heatMap, mixingGrid } from "./tensors.js";

const ROWS = Array.from({ length: 8 }, (_, k) => `row ${k + 1}`);

export function digitView(ask, run) {
  const seen = el("div", { class: "seen" });
  const answer = el("p", { class: "answer", role: "status" });
  const probabilities = el("div");
  const mixing = el("div", { class: "layers" });
  const moved = el("div");
  const classes = run.classes ?? Array.from({ length: 10 }, (_, k) => String(k));
  let image = null;

  const think = latest(async () => {
    fill(seen, heatMap({ name: "the model's input", shape: [8, 8], values: new Float32Array(image.flat()), largest: 1 }, { width: 96, ink: true }));
    const { probabilities: p, mixing: maps } = await ask("digit", { image });
    const best = p.indexOf(Math.max(...p));
    fill(answer, ...(field.empty() ? ["An empty field. Draw a digit on it."] : ["The model reads ", el("b", { id: "digit" }, classes[best]), "."]));
    fill(probabilities, bars(p.map((each, k) => ({ name: classes[k], p: each, best: k === best }))));
    fill(mixing, ...mixingGrid(maps, ROWS));
  });
  const field = drawingField((drawn) => {
    image = drawn;
    think();
  });
  image = field.image();

  const position = el("select", { "aria-label": "row" }, ROWS.map((row, k) => el("option", { value: k }, row)));
  const erase = button("Empty this row", async () => {
    const i = Number(position.value);
    const answer = await ask("edit", { image, position: i, to: new Array(8).fill(0) });
    fill(moved, movedTable(answer.moved, ROWS, i));
  });

  const node = el("div", { class: "two" },
    el("section", { class: "card" },
      el("h2", {}, "Draw a digit"),
      el("p", { class: "about" }, "With the mouse or a finger. The model does not see your lines: it sees 8 rows of 8 numbers, which say how much of each small square is covered, as in the pictures that it was trained on."),
      el("div", { class: "drawing" }, field.node, el("figure", {}, el("figcaption", {}, "What the model sees"), seen)),
      el("p", { class: "line" }, button("Clear", () => field.clear(), { id: "clear" }),
        el("label", {}, el("input", { type: "checkbox", checked: true, onchange: (event) => field.setFit(event.target.checked) }), " fit it to the picture, as in the data")),
      answer, probabilities),
    el("section", { class: "card" },
      el("h2", {}, "Attention weights"),
      el("p", { class: "about" }, "The eight rows of the picture are the model's tokens. In each matrix, row i has the weights of token i: yellow is the greatest, dark blue the least. A mixer with negative weights, such as a Fourier transform, has orange above 0 and blue below. Attention changes with the picture. A Fourier transform mixes in the same way whatever you draw."),
      mixing,
      el("h3", {}, "Change one row: which outputs move?"),
      el("p", { class: "line" }, position, erase), moved));
  return { node, renew: think };
}

// moved: for each layer, how far the output of each token moved.
export function movedTable(moved, tokens, position) {
  const most = Math.max(...moved.flat(), 1e-30);
  const still = (x) => x < 1e-6 * Math.max(most, 1);
  return el("div", { class: "scroll" }, el("table", { class: "moved" },
    el("thead", {}, el("tr", {}, el("th", {}, ""), tokens.map((token, k) => el("th", { class: k === position ? "changed" : "" }, token)))),
    el("tbody", {}, moved.map((row, layer) => el("tr", {}, el("th", {}, `layer ${layer + 1}`), row.map((x) =>
      el("td", {}, el("span", { class: "blob", style: `opacity:${still(x) ? 0 : 0.15 + 0.85 * Math.sqrt(x / most)}` }), still(x) ? "still" : x.toPrecision(2))))))));
}
