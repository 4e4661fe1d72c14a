// Live pictures: controls, the numbers that they give as tables, and a drawing of them.
//
// A picture is { title, controls, steps, draw, says }. A control is a number with a slider, a list or a matrix of
// numbers (each of its cells can be chosen, moved and typed), a choice or a button. Steps make numbers of them
// (parts.js), `draw` makes an SVG, and `says` a sentence, which screen readers read when it changes. In place of steps
// a picture may have `numbers`, a function: then it has tables whose cells are not linked.
// The arithmetic is that of ../../npformer/learn/play/static/model.js, which stands above this file on the site.

const PICTURES = {};
function written(value, digits) {
  if (Math.abs(value) >= 1e6) return value.toExponential(2).replaceAll("-", "\u2212");
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "\u2212"); // no -0.000
}
const shown = (value, whole = false) => value === -Infinity ? "\u2212\u221e" : written(value, whole ? 0 : Math.abs(value) < 100 ? 3 : 1);
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const isArray = (control) => Array.isArray(control.value);
const isSlider = (control) => !control.press && !control.of && !isArray(control);

// Controls ---------------------------------------------------------------------------------------------------------

const slider = ({ name, label, value, min, max, step }) =>
  `<label data-cell="${name}"><span>${label}</span><input type="range" data-name="${name}" min="${min}" max="${max}" step="${step}" value="${value}">` +
  `<input type="number" data-name="${name}" aria-label="${label}, typed" min="${min}" max="${max}" step="${step}" value="${value}"></label>`;
function choices({ name, label, of, value }) {
  const options = of.map((each) => `<option${each === value ? " selected" : ""}>${each}</option>`);
  return `<label data-cell="${name}"><span>${label}</span><select data-name="${name}">${options.join("")}</select></label>`;
}
const control = (c) => (c.press ? `<button type="button" data-name="${c.name}">${c.label}</button>` : c.of ? choices(c) : isArray(c) ? "" : slider(c));

// The slider and the box of the chosen cell.
const mover = '<label class="mover"><span></span><input type="range"><input type="number"></label>';

// Tables -----------------------------------------------------------------------------------------------------------

// A number is a 1 x 1 matrix here, and a row a 1 x n one, or a column an n x 1 one.
function asMatrix(value, isColumn = false) {
  if (value.length === undefined) return [[value]];
  if (value[0]?.length !== undefined) return value;
  return isColumn ? [...value].map((v) => [v]) : [[...value]];
}

// The places of a table's cells, as names: "S[1, 2]", "x[2]", "loss".
function cellNames(name, value, isColumn) {
  const nDimensions = shapeOf(value).length;
  return asMatrix(value, isColumn).map((row, i) => [...row].map((_, j) => cellAt(name, [[], [isColumn ? i : j], [i, j]][nDimensions])));
}

// dQ is the gradient of Q if there is a Q.
const isGradient = (name, arrays) => name[0] === "d" && name.slice(1) in arrays;
const familyOf = (picture, name) => picture.family?.[name] ?? (["Q", "K", "V", "A"].find((letter) => [letter, `d${letter}`].includes(name)) ?? "");

function table(picture, name, arrays) {
  const value = arrays[name];
  const isColumn = picture.columns?.includes(name);
  const cells = cellNames(name, value, isColumn);
  const isInput = picture.controls.some((c) => c.name === name);
  const kinds = [isInput ? "input" : "", isGradient(name, arrays) ? "gradient" : "", familyOf(picture, name), picture.weights?.includes(name) ? "weights" : ""];
  const numbered = cells.length > 1 || cells[0].length > 1;
  const numbers = cells[0].map((_, j) => `<th>${cells[0].length > 1 ? j : "&nbsp;"}</th>`).join("");
  const across = `<tr aria-hidden="true">${cells.length > 1 ? "<th></th>" : ""}${numbers}</tr>`;
  const lines = cells.map((row, i) => `<tr>${cells.length > 1 ? `<th aria-hidden="true">${i}</th>` : ""}` +
    `${row.map((cell) => `<td tabindex="-1" data-cell="${escaped(cell)}"></td>`).join("")}</tr>`);
  const says = `${name}${isInput ? ", can be changed" : ""}${numbered ? `, ${cells.length} by ${cells[0].length}` : ""}`;
  return `<table class="numbers ${kinds.join(" ")}" role="grid" aria-label="${escaped(says)}" data-name="${escaped(name)}">` +
    `<caption><i class="chip"></i>${escaped(name)}</caption>${across}${lines.join("")}</table>`;
}

const FULL = 4; // the size of a number that has the full colour; a weight of 1 has it
function fill(place, picture, arrays) {
  for (const numbers of place.querySelectorAll("table.numbers")) {
    const { name } = numbers.dataset;
    const values = asMatrix(arrays[name], picture.columns?.includes(name)).flatMap((row) => [...row]);
    const [isInput, isWeights] = ["input", "weights"].map((kind) => numbers.classList.contains(kind));
    const whole = values.every(Number.isInteger);
    const full = isWeights ? 1 : (picture.full ?? FULL);
    numbers.querySelectorAll("td").forEach((cell, k) => {
      const v = values[k];
      const hasMany = numbers.rows.length > 2 && picture.steps;
      cell.dataset.value = v;
      cell.textContent = isInput || v === -Infinity ? brief(v) : written(v, whole ? 0 : hasMany ? 2 : Math.abs(v) < 100 ? 3 : 1);
      cell.classList.toggle("below", v < 0);
      cell.style.setProperty("--part", `${Number.isFinite(v) && picture.steps ? ((70 * Math.min(Math.abs(v), full)) / full).toFixed(0) : 0}%`);
      cell.setAttribute("aria-label", `${cell.dataset.cell}, ${brief(v)}`);
    });
  }
}

// What the colours and frames of a picture mean.
function legendOf(picture, arrays) {
  const item = (kind, text) => `<span><i class="${kind}"></i>${text}</span>`;
  const names = Object.keys(arrays);
  const full = picture.full ?? FULL;
  const families = [["Q", "queries"], ["K", "keys"], ["V", "values"], ["A", "weights"]].filter(([letter]) => names.some((name) => familyOf(picture, name) === letter));
  return [
    item("swatch above", "above 0"), item("swatch below", `below 0 (full colour at ±${full} and beyond)`),
    picture.weights ? item("swatch weights", "a weight (full colour at 1)") : "",
    ...families.map(([letter, text]) => item(`chip ${letter}`, text)),
    names.some((name) => isGradient(name, arrays)) ? item("chip gradient", "ring: a gradient") : "",
    item("swatch here", "chosen"), item("swatch from", "it is made of"), item("swatch to", "it goes into"), item("swatch later", "from there"),
  ].join(" ");
}

// A picture in its place --------------------------------------------------------------------------------------------

function skeleton(picture, numbers) {
  const hasCells = picture.steps && picture.controls.some(isArray);
  const shows = picture.shows ?? [Object.keys(numbers).filter((name) => !picture.controls.some((c) => c.name === name && !isArray(c)))];
  const tables = shows.map((names) => `<div class="row">${names.map((name) => table(picture, name, numbers)).join("")}</div>`).join("");
  const said = '<p class="said" role="status"></p>';
  return `<figcaption>${picture.title}</figcaption>` + (picture.steps ? sentenceOf(picture) : "") +
    `<form novalidate>${hasCells ? mover : ""}${picture.controls.map(control).join("")}<button type="reset">Reset</button></form>` +
    `<div class="drawn" aria-hidden="true"></div>${picture.steps ? "" : said}<div class="tables"${picture.steps ? "" : ' tabindex="0" aria-label="numbers"'}>${tables}</div>` +
    (picture.steps ? `${said}${formulasOf(picture)}<p class="legend">${legendOf(picture, numbers)}</p>` : "");
}

function beginning(picture) {
  const values = picture.controls.filter((c) => !c.press).map((c) => [c.name, c.value]);
  return structuredClone({ ...Object.fromEntries(values), ...picture.begin });
}

function start(place) {
  const picture = PICTURES[place.dataset.live];
  const state = beginning(picture);
  const numbersOf = () => (picture.steps ? arraysOf(picture, state) : picture.numbers(state));
  place.innerHTML = skeleton(picture, numbersOf());
  const [form, drawing, said] = ["form", ".drawn", ".said"].map((selector) => place.querySelector(selector));
  const view = { place, picture, state };
  const linked = picture.steps && linkedView(view);
  const update = () => {
    view.numbers = numbersOf();
    fill(place, picture, view.numbers);
    if (picture.draw) drawing.innerHTML = picture.draw(state, view.numbers);
    if (picture.says) said.textContent = picture.says(state, view.numbers);
    linked?.refresh();
  };
  form.oninput = ({ target }) => {
    const value = target.type === "range" || target.type === "number" ? target.valueAsNumber : target.value;
    if (Number.isNaN(value)) return; // a minus alone, on the way to a number
    const cell = target.closest(".mover") ? readTerm(linked.moved) : { name: target.dataset.name, places: [] };
    const { min, max } = picture.controls.find((c) => c.name === cell.name);
    const inside = typeof value === "number" ? Math.max(min, Math.min(max, value)) : value;
    write(state, cell, inside);
    for (const other of target.parentElement.querySelectorAll("input")) if (other !== target) other.value = inside;
    update();
  };
  form.onchange = ({ target }) => {
    if (target.type === "number") target.value = valueIn(state, target, linked);
  };
  form.onclick = ({ target }) => {
    const pressed = picture.controls.find((c) => c.press && c.name === target.dataset?.name);
    if (pressed) update(pressed.press(state));
  };
  form.onsubmit = (event) => event.preventDefault();
  form.onreset = (event) => (event.preventDefault(), start(place));
  update();
}

// What a box shows once one has typed: the number that the picture has.
function valueIn(state, box, linked) {
  const { name, places } = readTerm(box.closest(".mover") ? linked.moved : box.dataset.name);
  return Number(places.reduce((value, place) => value[place], state[name]).toFixed(6));
}

function write(state, { name, places }, value) {
  if (!places.length) state[name] = value;
  else if (places.length === 1) state[name][places[0]] = value;
  else state[name][places[0]][places[1]] = value;
}

function startAll() {
  for (const place of document.querySelectorAll("figure.live")) {
    place.addEventListener("focusin", (event) => place.linked?.focused(event));
    start(place);
  }
  linkProse();
}
addEventListener("DOMContentLoaded", startAll);
