// Tensors as pictures: orange above 0, blue below, the page's own colour at 0. Attention weights
// go from dark blue to yellow, so that nearly equal ones differ, for colour-blind readers too.

import { css } from "./charts.js";
import { el, number, visible } from "./dom.js";

export function decoded(tensor) {
  if (tensor.values) return tensor.values;
  const bytes = Uint8Array.from(atob(tensor.data), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// Heads, rows and columns of what came: at most 8, 64 and 64.
export function sizes({ shape }) {
  const columns = shape.at(-1) ?? 1;
  const rows = shape.at(-2) ?? 1;
  const heads = shape.slice(0, -2).reduce((product, n) => product * n, 1);
  return [Math.min(heads, 8), Math.min(rows, 64), Math.min(columns, 64)];
}

function rgb(text) {
  const hex = text.replace("#", "");
  const wide = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
  return [0, 2, 4].map((k) => parseInt(wide.slice(k, k + 2), 16));
}

const STOPS = ["#00204d", "#414d6b", "#7c7b78", "#bcae6c", "#ffea46"].map(rgb); // cividis

// The colour of a share from 0 to 1 of the way between the least weight and the greatest.
export function shade(share) {
  const place = 4 * Math.min(Math.max(share, 0), 1);
  const k = Math.min(Math.floor(place), 3);
  return STOPS[k].map((start, c) => Math.round(start + (place - k) * (STOPS[k + 1][c] - start)));
}

// Least and greatest of some weights; if they are nearly equal, the scale begins at 0.
export function span(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low < 0 ? null : [high - low < 0.1 * high ? 0 : low, high || 1];
}

export function paint(canvas, values, rows, columns, scale, between) {
  canvas.again = () => paint(canvas, values, rows, columns, scale, between);
  canvas.width = columns;
  canvas.height = rows;
  const [none, plus, minus] = ["--zero", "--plus", "--minus"].map((name) => rgb(css(`var(${name})`)));
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(columns, rows);
  for (let k = 0; k < rows * columns; k++) {
    const value = values[k] / (scale || 1);
    const end = value < 0 ? minus : plus;
    const share = Number.isFinite(value) ? Math.min(Math.abs(value), 1) ** 0.7 : 1;
    const colour = between ? shade((values[k] - between[0]) / (between[1] - between[0])) : none.map((start, c) => start + share * (end[c] - start));
    for (let c = 0; c < 3; c++) image.data[4 * k + c] = colour[c];
    image.data[4 * k + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

// What the colours of a picture stand for.
export function scaleOf(greatest, between) {
  const [low, high] = between ?? [-greatest, greatest];
  const canvas = el("canvas", { class: "heat scale", "aria-hidden": "true" });
  paint(canvas, Float32Array.from({ length: 65 }, (_, k) => low + (k / 64) * (high - low)), 1, 65, greatest, between);
  return el("p", { class: "scale" }, number(low, 3), canvas, number(high, 3));
}

const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// A picture of the data is ink on paper: its least number is no ink, its largest all of it.
function fromZero(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.map((value) => (value - low) / (high - low || 1));
}

// A heat map. Options: head, width (in pixels, of the longer side), scale, ink, pick([i, j]), words([i, j], value).
export function heatMap(tensor, options = {}) {
  const [, rows, columns] = sizes(tensor);
  let values = decoded(tensor).subarray((options.head ?? 0) * rows * columns).subarray(0, rows * columns);
  if (options.ink) values = fromZero(values);
  const canvas = el("canvas", { class: "heat", role: "img", "aria-label": `${tensor.name}, ${shapeOf(tensor)}` });
  paint(canvas, values, rows, columns, options.scale ?? (options.ink ? 1 : tensor.largest ?? largest(values)),
    options.weights ? options.between ?? span(decoded(tensor)) : null);
  const cell = Math.max(1, (options.width ?? 160) / Math.max(rows, columns));
  canvas.style.width = `${columns * cell}px`;
  if (rows > 1) canvas.style.aspectRatio = `${columns} / ${rows}`;
  else canvas.style.height = `${Math.max(cell, 14)}px`;
  return options.pick ? walk(canvas, rows, columns, values, options) : canvas;
}

// The pointer or the arrow keys move from cell to cell, which a frame shows; a click or Enter chooses one.
function walk(canvas, rows, columns, values, { pick, look }) {
  let [i, j] = [0, 0];
  const frame = el("i", { class: "cell", hidden: true, "aria-hidden": "true", style: `width:${100 / columns}%;height:${100 / rows}%` });
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `${canvas.ariaLabel}: arrow keys go from cell to cell`);
  canvas.classList.add("pick");
  const cell = (event) => {
    const box = canvas.getBoundingClientRect();
    i = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
    j = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
  };
  const tell = () => {
    frame.hidden = false;
    [frame.style.left, frame.style.top] = [`${(100 * j) / columns}%`, `${(100 * i) / rows}%`];
    look?.([i, j], values[i * columns + j]);
  };
  canvas.addEventListener("pointermove", (event) => (cell(event), tell()));
  canvas.addEventListener("focus", tell);
  for (const name of ["pointerleave", "blur"]) canvas.addEventListener(name, () => (frame.hidden = document.activeElement !== canvas || name === "blur"));
  canvas.addEventListener("click", (event) => (cell(event), tell(), pick([i, j])));
  canvas.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (event.key === "Enter") pick([i, j]);
    else if (down === undefined) return;
    else [i, j] = [Math.min(rows - 1, Math.max(0, i + down)), Math.min(columns - 1, Math.max(0, j + right))];
    event.preventDefault();
    event.stopPropagation();
    tell();
  });
  return el("span", { class: "cells" }, canvas, frame);
}

const BY_HEAD = /^d?[SA]$/; // arrays that have a matrix for each head
const SPLIT = /^d?[QKVY]$/; // arrays whose columns the heads divide

// What a cell is, in words that count from 1, and as NumPy writes it: "head 2, row 3, column 5: A[1, 2, 4]".
// names: heads, and the words of rows (of S and A those of columns, too).
export function cellName({ name, shape }, head, [i, j], { nHeads, words } = {}) {
  const word = (k) => (words?.[k] === undefined ? "" : ` “${visible(words[k])}”`);
  const columns = shape.at(-1);
  const parts = [];
  if (shape.length > 2) parts.push(`${BY_HEAD.test(name) ? "head" : "matrix"} ${head + 1}`);
  else if (SPLIT.test(name) && columns % nHeads === 0) parts.push(`head ${Math.floor((j * nHeads) / columns) + 1}`);
  if (shape.length > 1) parts.push(`row ${i + 1}${word(i)}`);
  parts.push(shape.length > 1 ? `column ${j + 1}${BY_HEAD.test(name) ? word(j) : ""}` : `entry ${j + 1}`);
  const index = [head, i, j].slice(-Math.min(shape.length, 3));
  return `${parts.join(", ")}: ${name}[${index.join(", ")}]`;
}

export const shapeOf = ({ shape }) => (shape.length ? shape.join(" × ") : "one number");

// A tensor with its name, shape, mean and spread. All heads, or rows of the batch, side by side.
export function tensorCard(tensor, options = {}) {
  const [heads, rows, columns] = sizes(tensor);
  const readout = el("output", { class: "readout" });
  const weights = tensor.name === "A";
  const look = (head) => (cell, value) => (readout.textContent = `${cellName(tensor, head, cell, options.names)} = ${number(value)}`);
  const width = options.width ?? (heads > 1 ? 84 : columns > 2 * rows ? 260 : 160);
  const maps = Array.from({ length: heads }, (_, head) =>
    heatMap(tensor, { width, head, look: look(head), weights, pick: options.pick ?? (() => {}) }));
  if (options.pick) maps.forEach((map) => map.firstChild.classList.add("weights"));
  return el("figure", { class: "tensor", "data-name": tensor.name },
    el("figcaption", {}, el("b", {}, options.title ?? tensor.name), el("span", { class: "shape" }, shapeOf(tensor))),
    el("div", { class: "maps" }, maps), scaleOf(tensor.largest, weights ? span(decoded(tensor)) : null),
    el("dl", {},
      el("dt", {}, "mean"), el("dd", { class: "mean" }, number(tensor.mean)),
      el("dt", {}, "spread"), el("dd", { class: "spread" }, number(tensor.spread))),
    tensor.cut ? el("small", {}, `the first 64 rows and columns${heads > 1 ? " of the first 8 matrices" : ""}`) : null,
    readout);
}

// Ids of tokens, with their words: as numbers they have no size to compare.
export const idsCard = (tensor, words) => el("figure", { class: "tensor" },
  el("figcaption", {}, el("b", {}, tensor.name), el("span", { class: "shape" }, `${shapeOf(tensor)} ids of tokens`)),
  el("p", { class: "takes ids" }, [...decoded(tensor)].map((id, k) => el("span", {}, words ? visible(words[k]) : "", el("sub", {}, String(id))))),
  words?.includes("[UNK]") ? el("small", {}, "[UNK] is a word that the model does not know.") : null);

// The weights of one head, with their tokens along both sides: row i has those of token i.
export function mixingMap(tensor, head, rows, columns, options = {}) {
  const readout = el("output", { class: "readout" });
  const words = (names, k) => names?.[k] ?? k;
  const map = heatMap(tensor, {
    head, width: options.width ?? 130, scale: options.scale, weights: true, between: options.between,
    look: ([i, j], value) =>
      (readout.textContent = `weight of “${words(columns ?? rows, j)}” for “${words(rows, i)}”: ${number(value, 3)}`),
    pick: () => {},
  });
  return el("figure", { class: "mixing" }, el("figcaption", {}, options.title ?? `head ${head + 1}`), map, readout);
}

// All layers and heads. mixing: [{layer, kind, heads: TENSOR}].
export function mixingGrid(mixing, rows, columns, above = () => null) {
  return mixing.map((each, layer) => {
    const [heads, , n] = sizes(each.heads);
    const scale = Math.max(largest(decoded(each.heads)), 2 / n); // equal weights are half as deep, not deepest
    const between = span(decoded(each.heads));
    const maps = Array.from({ length: heads }, (_, head) =>
      mixingMap(each.heads, head, rows, columns, { scale, between, title: heads > 1 ? `head ${head + 1}` : "all features" }));
    return el("section", { class: "layer" }, el("h4", {}, `Layer ${layer + 1}: ${each.kind}`), above(layer) ?? "", el("div", { class: "maps" }, maps), scaleOf(scale, between));
  });
}
