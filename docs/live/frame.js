// Live pictures: controls, the numbers that they give, and a drawing of them.
//
// A picture is { title, controls, numbers, draw }: `numbers` turns the values of the controls into named
// scalars, rows and matrices, which are shown as tables; `draw` makes an SVG of both, and `says` a sentence, which
// screen readers read when it changes. Both may be left out.
// The arithmetic is that of ../../npformer/learn/play/static/model.js, which stands above this file on the site.

const PICTURES = {};
function written(value, digits) {
  if (Math.abs(value) >= 1e6) return value.toExponential(2).replaceAll("-", "\u2212");
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "\u2212"); // no -0.000
}
const shown = (value, whole = false) => value === -Infinity ? "\u2212\u221e" : written(value, whole ? 0 : Math.abs(value) < 100 ? 3 : 1);
const escaped = (words) => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function sliders({ name, label, value, min, max, step = "any" }) {
  const of = Array.isArray(value) ? value : [value];
  const one = (each, i) => {
    const words = of.length > 1 ? `${label} ${i}` : label;
    return `<label><span>${words}</span><input type="range" data-name="${name}" data-index="${i}" min="${min}" max="${max}" ` +
      `step="${step}" value="${each}"><output>${shown(each, step === 1)}</output></label>`;
  };
  return of.map(one).join("");
}

function choices({ name, label, of, value }) {
  const options = of.map((each) => `<option${each === value ? " selected" : ""}>${each}</option>`);
  return `<label><span>${label}</span><select data-name="${name}">${options.join("")}</select></label>`;
}

const control = (c) =>
  c.press ? `<button type="button" data-name="${c.name}">${c.label}</button>` : c.of ? choices(c) : sliders(c);

// A scalar is a 1 x 1 matrix here, and a row a 1 x n one.
const asMatrix = (value) => (value.length === undefined ? [[value]] : value[0]?.length === undefined ? [[...value]] : value);

function table(name, value, marked) {
  const rows = asMatrix(value);
  const largest = Math.max(1e-12, ...rows.flatMap((row) => [...row].filter(Number.isFinite).map(Math.abs)));
  const whole = rows.every((row) => [...row].every(Number.isInteger));
  const text = (v) => (rows[0].length > 6 && !whole ? written(v, 2) : shown(v, whole)); // many columns are narrow
  const cell = (v, i) => `<td data-value="${v}" class="${v < 0 ? "below" : "above"}${marked === i ? " marked" : ""}" ` +
    `style="--part: ${Number.isFinite(v) ? ((70 * Math.abs(v)) / largest).toFixed(0) : 0}%">${text(v)}</td>`;
  const lines = rows.map((row, i) => `<tr>${[...row].map((v) => cell(v, i)).join("")}</tr>`);
  return `<table class="numbers" data-name="${escaped(name)}"><caption>${escaped(name)}</caption>${lines.join("")}</table>`;
}

function start(place) {
  const picture = PICTURES[place.dataset.live];
  const state = {};
  for (const c of picture.controls) if (!c.press) state[c.name] = Array.isArray(c.value) ? [...c.value] : c.value;
  Object.assign(state, structuredClone(picture.begin ?? {}));
  place.innerHTML =
    `<figcaption>${picture.title}</figcaption><form>${picture.controls.map(control).join("")}` +
    '<button type="reset">Reset</button></form><div class="drawn" aria-hidden="true"></div><p class="said" role="status"></p><div class="tables" tabindex="0" aria-label="numbers"></div>';
  const [form, drawn, said, tables] = ["form", ".drawn", ".said", ".tables"].map((each) => place.querySelector(each));
  const update = () => {
    const numbers = picture.numbers(state);
    tables.innerHTML = Object.entries(numbers).map(([name, value]) => table(name, value, picture.marked?.(state, name))).join("");
    if (picture.draw) drawn.innerHTML = picture.draw(state, numbers);
    if (picture.says) said.textContent = picture.says(state, numbers);
  };
  form.addEventListener("input", ({ target }) => {
    const { name, index } = target.dataset;
    const value = target.type === "range" ? target.valueAsNumber : target.value;
    if (Array.isArray(state[name])) state[name][index] = value;
    else state[name] = value;
    if (target.type === "range") target.nextElementSibling.textContent = shown(value, target.step === "1");
    update();
  });
  form.addEventListener("click", ({ target }) => {
    const pressed = picture.controls.find((c) => c.press && c.name === target.dataset?.name);
    if (pressed) update(pressed.press(state));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => (event.preventDefault(), start(place)));
  update();
}

// Drawing ---------------------------------------------------------------------------------------------------------

const svg = (width, height, inside) => `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${inside}</svg>`;
const path = (points, kind) => `<polyline class="${kind}" points="${points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ")}"/>`;
const circle = ([x, y], kind, r = 4) => `<circle class="${kind}" cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${r}"/>`;
const words = ([x, y], text, anchor = "middle") => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(text)}</text>`;
// A map from data to a frame of a width and a height: [x0, x1] from left to right, [y0, y1] from the bottom up.
const scale = (width, height, [x0, x1], [y0, y1]) => ([x, y]) => [((x - x0) / (x1 - x0)) * width, height - ((y - y0) / (y1 - y0)) * height];

// Bars beside each other for rows of the same length, from the line of 0.
function bars(rows, kinds, labels) {
  const [n, high, wide] = [rows[0].length, 110, 34];
  const all = rows.flatMap((row) => [...row]);
  const [low, top] = [Math.min(0, ...all), Math.max(1e-9, ...all)];
  const at = (v) => 8 + (high * (top - v)) / (top - low);
  const each = range(n, (i) => rows.map((row, k) => {
    const x = 10 + i * (rows.length * wide + 22) + k * wide;
    const [a, b] = [at(0), at(row[i])].sort((p, q) => p - q);
    return `<rect class="${kinds[k]}" x="${x}" y="${a.toFixed(2)}" width="${wide - 5}" height="${(b - a).toFixed(2)}"/>` +
      words([x + wide / 2 - 2, high + 26], labels[k]);
  }).join("")).join("");
  const width = n * (rows.length * wide + 22) + 6;
  return svg(width, high + 34, `<line class="axis" x1="0" x2="${width}" y1="${at(0)}" y2="${at(0)}"/>${each}`);
}

addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.live").forEach(start));
