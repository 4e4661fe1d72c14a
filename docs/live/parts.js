// What each number of a picture is made of, and what is made of it: read from formulas, which are data.
//
// A step of a picture is { makes: "S[i, j]", formula: "{Q[i, :]} · {K[j, :]} / √2", numbers(arrays, state) }.
// A term in braces names the cells that a cell of the result depends on: i and j are the result's own places, a
// colon is a whole axis, another name is a choice of the reader (a label, a mask). tests/docs/test_parts.py changes
// one cell after the other: what a step does not name does not change its result.
// #i in a formula is the place itself. `inner: true` is a step that only abbreviates, such as the normaliser of softmax: one sees through it.
// `hidden(places, state)` says which cells are made of nothing, because a mask hides them.

const TERM = /\{([^}]*)\}/g;
const PLACE = /#(\w)/g;

// "S[i, j]" -> { name: "S", places: ["i", "j"] }
function readTerm(text) {
  const [, name, inside] = text.match(/^(.*?)(?:\[(.*)\])?$/);
  return { name, places: inside === undefined ? [] : inside.split(",").map((place) => place.trim()) };
}
const nameOf = (cell) => readTerm(cell).name;
const cellAt = (name, places) => (places.length ? `${name}[${places.join(", ")}]` : name);
const termsOf = (step) => [...step.formula.matchAll(TERM)].map(([, text]) => readTerm(text));

const shapeOf = (value) => (typeof value === "string" || value.length === undefined ? [] : [value.length, ...shapeOf(value[0])]);
const numberAt = (arrays, cell) => {
  const { name, places } = readTerm(cell);
  return places.reduce((value, place) => value[place], arrays[name]);
};

// A place such as the label in p[label] is a choice of the reader: what is at that place depends on the choice, too.
const choicesIn = ({ places }, arrays) => places.filter((place) => place in arrays);

// All cells that a term names. `bound` says what its letters are; a letter without a value stands for a whole axis.
function cellsOf({ name, places }, arrays, bound = {}) {
  const axes = shapeOf(arrays[name]).map((size, axis) => {
    const place = Number(bound[places[axis]] ?? places[axis] ?? NaN);
    return Number.isNaN(place) ? range(size, (k) => k) : [place];
  });
  const combine = (heads, axis) => heads.flatMap((head) => axis.map((place) => [...head, place]));
  return axes.reduce(combine, [[]]).map((each) => cellAt(name, each));
}

// "Q[1, :]; K[2, :]" -> the cells of both.
const cellsOfTerms = (text, arrays) => text.split(";").flatMap((term) => cellsOf(readTerm(term.trim()), arrays));

// The values of a result's letters at a cell, and those of the reader's choices.
function bindings(step, places, state) {
  const letters = readTerm(step.makes).places;
  return { ...state, ...Object.fromEntries(letters.map((letter, axis) => [letter, Number(places[axis])])) };
}

// All arrays of a picture: what the reader can change, and what the steps make of it, in their order.
function arraysOf(picture, state) {
  const arrays = {};
  for (const { name, press } of picture.controls) if (!press) arrays[name] = state[name];
  for (const step of picture.steps) arrays[nameOf(step.makes)] = step.numbers(arrays, state);
  return arrays;
}

const stepThatMakes = (picture, name) => picture.steps.find((step) => nameOf(step.makes) === name);

// For each cell, the cells that it is made of, and the cells that are made of it.
function linksOf(picture, arrays, state) {
  const [sources, targets] = [new Map(), new Map()];
  for (const step of picture.steps) {
    for (const cell of cellsOf(readTerm(step.makes), arrays)) {
      const { places } = readTerm(cell);
      if (step.hidden?.(places.map(Number), state)) continue;
      const bound = bindings(step, places, state);
      const named = new Set(termsOf(step).flatMap((term) => [...cellsOf(term, arrays, bound), ...choicesIn(term, arrays)]));
      const from = [...named].filter((source) => numberAt(arrays, source) !== -Infinity);
      sources.set(cell, from);
      for (const source of from) targets.set(source, [...(targets.get(source) ?? []), cell]);
    }
  }
  return { sources, targets };
}

// What lights up with the chosen cells, in five kinds: here, from, before (behind an inner step), to, and later.
function litBy(picture, { sources, targets }, chosen) {
  const kinds = new Map(chosen.map((cell) => [cell, "here"]));
  const mark = (cells, kind) => {
    const fresh = cells.filter((cell) => !kinds.has(cell));
    for (const cell of fresh) kinds.set(cell, kind);
    return fresh;
  };
  const next = (cells, links) => [...new Set(cells.flatMap((cell) => links.get(cell) ?? []))];
  const from = mark(next(chosen, sources), "from");
  const inner = from.filter((cell) => stepThatMakes(picture, nameOf(cell))?.inner);
  mark(next(inner, sources), "before");
  let front = mark(next(chosen, targets), "to");
  while (front.length) front = mark(next(front, targets), "later");
  return kinds;
}

// Words ------------------------------------------------------------------------------------------------------------

// A whole last axis need not be written: Q[1] is the row Q[1, :].
function shortTerm({ name, places }, bound = {}) {
  const written = places.map((place) => bound[place] ?? place);
  while (written.at(-1) === ":") written.pop();
  return cellAt(name, written);
}

const brief = (value) => (typeof value === "string" ? value : value === -Infinity ? "\u2212\u221e" : String(Number(value.toFixed(3))).replace("-", "\u2212"));
const several = (values) => (values.length === 1 ? brief(values[0]) : `(${values.map(brief).join(", ")})`);

// "S[1, 2] = Q[1] · K[2] / √2 = (0, 2) · (1, 1) / √2 = 1.414"
function equation(step, cell, arrays, state) {
  const bound = bindings(step, readTerm(cell).places, state);
  const formula = step.formula.replace(PLACE, (_, letter) => bound[letter]);
  const inNames = formula.replace(TERM, (_, text) => shortTerm(readTerm(text), bound));
  const inNumbers = formula.replace(TERM, (_, text) =>
    several(cellsOf(readTerm(text), arrays, bound).map((source) => numberAt(arrays, source))));
  return [cell, ...new Set([inNames, inNumbers, brief(numberAt(arrays, cell))])].join(" = ");
}

// "S[1], dK[:, 0] and 3 numbers of A" for many cells.
function gathered(cells, arrays) {
  const names = [...new Set(cells.map(nameOf))];
  const phrases = names.map((name) => gatheredOf(name, new Set(cells.filter((cell) => nameOf(cell) === name)), arrays));
  return phrases.length > 1 ? `${phrases.slice(0, -1).join(", ")} and ${phrases.at(-1)}` : phrases[0];
}

function gatheredOf(name, cells, arrays) {
  const shape = shapeOf(arrays[name]);
  const all = cellsOf({ name, places: [] }, arrays);
  if (cells.size === all.length) return name;
  const lines = shape.length < 2 ? [] : shape.flatMap((size, axis) => range(size, (k) => axis ? [":", k] : [k, ":"]));
  const line = lines.map((places) => ({ name, places })).find((term) => {
    const members = cellsOf(term, arrays);
    return members.length === cells.size && members.every((cell) => cells.has(cell));
  });
  if (line) return shortTerm(line);
  return cells.size <= 4 ? [...cells].join(", ") : `${cells.size} numbers of ${name}`;
}

// The tokens that a choice is about: { query: {1}, key: {2} } for S[1, 2].
function tokensOf(picture, kinds) {
  const tokens = {};
  for (const [cell, kind] of kinds) {
    if (!["here", "from"].includes(kind)) continue;
    const { name, places } = readTerm(cell);
    (picture.axes?.[name] ?? []).forEach((role, axis) => role && (tokens[role] ??= new Set()).add(Number(places[axis])));
  }
  return tokens;
}

// In words and numbers: where the chosen cells come from, and where they go.
function provenance(picture, arrays, state, links, chosen) {
  const kinds = litBy(picture, links, chosen);
  const all = (kind) => [...kinds].filter(([, its]) => its === kind).map(([cell]) => cell);
  const [cell] = chosen;
  const step = chosen.length === 1 && stepThatMakes(picture, nameOf(cell));
  const sentences = [];
  if (step && step.hidden?.(readTerm(cell).places.map(Number), state)) sentences.push(`${cell} = ${brief(numberAt(arrays, cell))}: hidden by the mask`);
  else if (step) sentences.push(equation(step, cell, arrays, state));
  else {
    const values = chosen.map((each) => numberAt(arrays, each));
    sentences.push(gathered(chosen, arrays) + (chosen.length <= 4 ? ` = ${several(values)}` : ""));
    if (all("from").length) sentences.push(`Made of ${gathered(all("from"), arrays)}`);
  }
  const query = [...(tokensOf(picture, kinds).query ?? [])];
  const key = [...(tokensOf(picture, kinds).key ?? [])];
  const named = (role, [token]) => `${role} \u201c${picture.words[token]}\u201d`;
  if (step && query.length === 1 && key.length === 1) sentences.push(`The ${named("query of", query)} meets the ${named("key of", key)}`);
  if (all("to").length) sentences.push(`Goes into ${gathered(all("to"), arrays)}`);
  if (all("later").length) sentences.push(`Later: ${gathered(all("later"), arrays)}`);
  return `${sentences.join(". ")}.`;
}
