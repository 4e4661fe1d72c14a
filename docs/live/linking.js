// Linking: a number that one points at, touches or focuses lights up what it is made of and what is made of it, in the
// tables, the formulas, the sentence of tokens and the controls; formulas, tokens and words of the text light up
// numbers. One of the cells of each table is in the order of the Tab key, and arrows move on from there.

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const CHOOSE = "Choose a number: point at it, tap it, or use the Tab and arrow keys.";
const KINDS = ["here", "from", "before", "to", "later"];

const termButton = (picture, text, more) => `<button type="button" class="term ${familyOf(picture, readTerm(text).name)}" tabindex="-1" data-term="${escaped(text)}" ${more}>${escaped(shortTerm(readTerm(text)))}</button>`;
function formulasOf(picture) {
  const lines = picture.steps.map((step, k) => {
    const parts = step.formula.split(TERM).map((text, at) => (at % 2 ? termButton(picture, text, "") : escaped(text.replace(PLACE, "$1"))));
    return `<li data-step="${k}">${termButton(picture, step.makes, 'data-result=""')} = ${parts.join("")}</li>`;
  });
  return `<ul class="formulas" aria-label="formulas">${lines.join("")}</ul>`;
}

const sentenceOf = ({ words }) => (!words ? "" : `<p class="sentence" role="group" aria-label="tokens">${words.map((word, i) =>
  `<button type="button" tabindex="-1" data-token="${i}">${word}<sub>${i}</sub></button>`).join(" ")}</p>`);

// The cells of a token: its row of each array that the reader can change.
const cellsOfToken = ({ picture, numbers }, token) => Object.entries(picture.axes)
  .filter(([name, roles]) => picture.controls.some((c) => c.name === name) && roles.length === 1)
  .flatMap(([name]) => cellsOf({ name, places: [token] }, numbers));

function linkedView(view) {
  const { place, picture, state } = view;
  const [said, moverLabel] = [".said", ".mover"].map((selector) => place.querySelector(selector));
  const first = picture.controls.find(isArray);
  let links;
  // What lights up, and the cells that the formulas are written for: a term of a formula leaves it as it stands.
  const nothing = { cells: [], about: [] };
  let [pinned, hovered] = [nothing, null];
  const linked = { moved: first && cellAt(first.name, first.value[0].length ? [0, 0] : [0]) };

  // The term of a formula as it stands, for the chosen cell where the line is about it.
  const cellsOfButton = (button) => {
    const step = picture.steps[button.closest("li").dataset.step];
    return cellsOf(readTerm(button.dataset.term), view.numbers, boundIn(step, (hovered ?? pinned).about));
  };
  const boundIn = (step, [cell, ...others]) =>
    cell && !others.length && nameOf(step.makes) === nameOf(cell) ? bindings(step, readTerm(cell).places, state) : {};
  const choiceAt = (element) => {
    if (element.matches(".term")) return { cells: cellsOfButton(element), about: (hovered ?? pinned).about };
    const cells = element.dataset.cell ? [element.dataset.cell] : cellsOfToken(view, Number(element.dataset.token));
    return { cells, about: cells };
  };

  function light() {
    const { cells: chosen, about } = hovered ?? pinned;
    const kinds = litBy(picture, links, chosen);
    place.classList.toggle("lit", chosen.length > 0);
    const show = (element, kind) => KINDS.forEach((each) => element.classList.toggle(each, each === kind));
    for (const element of place.querySelectorAll("[data-cell]")) show(element, kinds.get(element.dataset.cell));
    for (const line of place.querySelectorAll(".formulas li")) lightLine(line, picture.steps[line.dataset.step], { chosen, about, kinds, show });
    const tokens = tokensOf(picture, chosen.length ? kinds : new Map());
    for (const button of place.querySelectorAll("[data-token]")) {
      for (const role of ["query", "key"]) button.classList.toggle(role, tokens[role]?.has(Number(button.dataset.token)) ?? false);
    }
    if (!picture.says) said.textContent = chosen.length ? provenance(picture, view.numbers, state, links, chosen) : picture.controls.some(isArray) ? CHOOSE : "";
  }

  function lightLine(line, step, { chosen, about, kinds, show }) {
    const bound = boundIn(step, about);
    const isNow = Object.keys(bound).length > 0 || (chosen.length > 0 && chosen.every((cell) => nameOf(cell) === nameOf(step.makes)));
    const isGoal = [...kinds].some(([cell, kind]) => kind === "to" && nameOf(cell) === nameOf(step.makes));
    line.classList.toggle("now", isNow);
    for (const button of line.querySelectorAll(".term")) {
      const term = readTerm(button.dataset.term);
      button.textContent = shortTerm(term, bound);
      const isResult = "result" in button.dataset;
      const isChosen = chosen.some((cell) => nameOf(cell) === term.name);
      const kind = isResult ? (isNow && "here") || (isGoal && "to") : (isNow && "from") || (isGoal && isChosen && "here");
      show(button, kind);
    }
  }

  // The slider and the box move the cell that was chosen last, of those that can be moved.
  function aim(cell) {
    const { name } = readTerm(cell);
    const its = picture.controls.find((c) => c.name === name && isArray(c));
    if (!its || !moverLabel) return;
    linked.moved = cell;
    const value = numberAt(state, cell);
    moverLabel.firstChild.textContent = cell;
    for (const input of moverLabel.querySelectorAll("input")) {
      Object.assign(input, { min: its.min, max: its.max, step: its.step, value: Number(value.toFixed(6)) });
      input.setAttribute("aria-label", `${cell}, ${input.type === "range" ? "slide" : "type a number"}`);
    }
    for (const each of place.querySelectorAll(".moves")) each.classList.remove("moves");
    place.querySelector(`td[data-cell="${CSS.escape(cell)}"]`)?.classList.add("moves");
  }

  linked.refresh = () => {
    links = linksOf(picture, view.numbers, state);
    const isBusy = moverLabel?.contains(document.activeElement);
    if (linked.moved && !isBusy) aim(linked.moved);
    light();
  };
  const pin = (choice) => {
    [pinned, hovered] = [choice, null];
    if (choice.cells.length === 1) aim(choice.cells[0]);
    light();
  };
  const hover = (choice) => {
    hovered = choice;
    light();
  };
  linked.pin = (cells) => pin({ cells, about: cells });
  linked.hover = (cells) => hover(cells && { cells, about: cells });
  linked.cells = (text) => cellsOfTerms(text, view.numbers);
  linked.says = (cells) => provenance(picture, view.numbers, state, links, cells);
  place.linked = linked;

  const subject = (target) => target.closest?.("td[data-cell], rect[data-cell], .term, [data-token], label[data-cell]");
  place.onpointerover = ({ target, pointerType }) => {
    if (pointerType === "touch" || target.closest("label")) return;
    const element = subject(target);
    if (element) hover(choiceAt(element));
    else if (hovered && !target.closest(".tables")) linked.hover(null);
  };
  place.onpointerleave = () => hovered && linked.hover(null);
  linked.focused = ({ target }) => {
    const element = subject(target);
    if (target.closest(".mover")) linked.pin([linked.moved]);
    else if (element) {
      pin(choiceAt(element));
      rove(element);
    }
  };
  place.onclick = ({ target }) => {
    const element = subject(target);
    if (element?.matches(".term, [data-token]")) pin(choiceAt(element)); // Safari does not focus buttons
  };
  place.onkeydown = (event) => keyPressed(event, linked, moverLabel);
  for (const group of place.querySelectorAll("table.numbers, .formulas, .sentence")) group.querySelector("td, button").tabIndex = 0;
  return linked;
}

// Only the element of a group that was focused last is in the order of the Tab key.
function rove(element) {
  const group = element.closest("table.numbers, .formulas, .sentence");
  if (!group) return;
  for (const other of group.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  element.tabIndex = 0;
}

function neighbour(element, [down, right]) {
  if (element.matches("td")) {
    const rows = [...element.closest("table").rows].map((row) => [...row.querySelectorAll("td")]).filter((row) => row.length);
    const i = rows.findIndex((row) => row.includes(element));
    return rows[i + down]?.[rows[i].indexOf(element) + right];
  }
  const buttons = [...element.closest(".formulas, .sentence").querySelectorAll("button")];
  return buttons[buttons.indexOf(element) + (right || down)];
}

function keyPressed(event, linked, moverLabel) {
  const { target, key } = event;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const handled = () => (event.preventDefault(), event.stopPropagation()); // arrows turn the theme's pages
  const box = moverLabel?.querySelector("[type=number]");
  if (key === "Escape") return linked.pin([]);
  if (target === box && key === "Enter") {
    handled();
    moverLabel.closest("figure").querySelector(`td[data-cell="${CSS.escape(linked.moved)}"]`).focus();
  }
  if (!target.matches("td, .term, [data-token]")) return;
  if (key in ARROWS) {
    handled();
    neighbour(target, ARROWS[key])?.focus();
  } else if (target.dataset.cell === linked.moved && (key === "Enter" || /^[-.\d]$/.test(key))) {
    if (key === "Enter") handled(); // a digit goes into the box, which is empty then
    box.focus();
    box.select();
  }
}

// Words of the text: <a class="light" data-live="attention" data-cells="Q[1, :]">.
function linkProse() {
  for (const link of document.querySelectorAll("a.light")) {
    const place = figureOf(link);
    if (!place) continue;
    const cells = () => place.linked.cells(link.dataset.cells);
    link.onpointerenter = link.onfocus = () => {
      link.title = place.linked.says(cells());
      place.linked.hover(cells());
    };
    link.onpointerleave = link.onblur = () => place.linked.hover(null);
    link.onclick = (event) => {
      event.preventDefault();
      place.linked.pin(cells());
      place.querySelector(".tables").scrollIntoView({ block: "center" });
      leadBack(place, link);
    };
  }
}

const figureOf = (link) => document.querySelector(`figure.live[data-live="${link.dataset.live}"]`);

function leadBack(place, link) {
  place.querySelector(".back")?.remove();
  const button = Object.assign(document.createElement("button"), { type: "button", className: "back", textContent: "Back to the text" });
  button.onclick = () => {
    button.remove();
    link.scrollIntoView({ block: "center" });
    link.focus({ preventScroll: true });
  };
  place.querySelector(".said").after(button);
  button.focus({ preventScroll: true });
}
