// "Train": the settings of up to four runs, their controls, and their curves.

import { post } from "./api.js";
import { curves } from "./curves.js";
import { button, choice, el, field, number, percent } from "./dom.js";
import { colour, nameOfRun, store, waits } from "./store.js";

const NUMBERS = [
  ["d_model", "Width", "numbers that stand for one token (d_model)"],
  ["n_heads", "Heads", "parts into which attention splits the width"],
  ["d_ff", "Inner width", "of the feed-forward network (d_ff)"],
  ["batch_size", "Batch", "samples in one step"],
  ["epochs", "Epochs", "times through the data"],
  ["dropout", "Dropout", "share of numbers set to 0 while training"],
  ["seed", "Seed", "of the weights and of the order of the data: the same for all runs"],
];
const MOST_RUNS = 4;

export function trainView(root) {
  const form = el("form", { class: "card settings" });
  const controls = el("div", { class: "line controls" });
  const cards = el("div", { class: "runs" });
  const plots = curves();
  const more = el("details", { class: "more" }, el("summary", {}, "Sizes and seed"));
  const about = el("p", { class: "about" });
  const rows = el("div", { class: "rows" });
  let settings = null;
  let runs = []; // {mixers, lr}: what differs

  function start() {
    if (!store.choices) return;
    const tasks = store.choices.tasks;
    const task = choice(tasks.map(({ name, title }) => [name, title]), tasks[0].name, { id: "task" });
    task.addEventListener("change", () => choose(task.value));
    form.replaceChildren(
      el("h2", {}, "A model to train"), field("Task", task), about, el("h3", {}, "Runs side by side"),
      el("p", { class: "about" }, "Each run has the same data in the same order and starts from the same seed. What differs is how its layers mix tokens, and its learning rate."),
      rows, more,
      el("p", { class: "line" }, button("Start", begin, { class: "main", id: "start" })));
    form.addEventListener("submit", (event) => event.preventDefault());
    choose(task.value);
    root.replaceChildren(form, el("div", { class: "live" }, controls, cards, plots.node));
    update({ kind: "runs" });
  }

  function choose(name) {
    const task = store.choices.tasks.find((each) => each.name === name);
    about.textContent = task.about;
    settings = { ...task.defaults };
    runs = [{ mixers: [...settings.mixers], lr: settings.lr }];
    const inputs = NUMBERS.map(([key, label, hint]) => field(label, el("input", {
      type: "number", name: key, min: 0, step: key === "dropout" ? 0.05 : 1, value: settings[key],
      oninput: (event) => (settings[key] = event.target.valueAsNumber),
    }), hint));
    const activation = choice(["gelu", "relu"], settings.activation, { name: "activation", onchange: (event) => (settings.activation = event.target.value) });
    const files = ["file", "text_column", "label_column"].filter(() => ["file", "text"].includes(name)).map((key) => field(
      { file: "File on this machine", text_column: "Column of the text", label_column: "Column of the label" }[key],
      el("input", { type: "text", name: key, value: settings[key] ?? "", oninput: (event) => (settings[key] = event.target.value || null) })));
    more.replaceChildren(more.firstChild, el("div", { class: "fields" }, inputs, field("Activation", activation, "bend in the feed-forward network")));
    about.after(...files.splice(0, name === "file" ? 3 : 1));
    for (const stale of form.querySelectorAll(":scope > .field.stale")) stale.remove();
    for (const fresh of form.querySelectorAll(":scope > .field")) if (fresh.querySelector("[type=text]")) fresh.classList.add("stale");
    listRuns();
  }

  function listRuns() {
    const mixers = store.choices.mixers.map(({ name }) => name);
    rows.replaceChildren(...runs.map((run, k) => el("fieldset", { class: "run" },
      el("legend", {}, el("i", { class: "dot", style: `background:${colour(k)}` }), `Run ${k + 1}`),
      run.mixers.map((mixer, layer) => field(`Layer ${layer + 1} mixes by`, choice(mixers, mixer, {
        class: "mixer", title: aboutMixer(mixer),
        onchange: (event) => ((run.mixers[layer] = event.target.value), (event.target.title = aboutMixer(event.target.value))),
      }))),
      field("Learning rate", el("input", { type: "number", class: "lr", min: 0, step: "any", value: run.lr, oninput: (event) => (run.lr = event.target.valueAsNumber) })),
      runs.length > 1 ? el("button", { type: "button", class: "remove", "aria-label": `remove run ${k + 1}`, onclick: () => (runs.splice(k, 1), listRuns()) }, "×") : null)),
    el("p", { class: "line" },
      runs.length < MOST_RUNS ? el("button", { type: "button", id: "another", onclick: another }, "+ run") : null,
      el("button", { type: "button", onclick: () => layers(1) }, "+ layer"),
      runs[0].mixers.length > 1 ? el("button", { type: "button", onclick: () => layers(-1) }, "− layer") : null));
  }
  const aboutMixer = (name) => store.choices.mixers.find((each) => each.name === name)?.about ?? "";

  function another() {
    const last = runs.at(-1);
    const used = new Set(runs.map((run) => run.mixers[0]));
    const other = ["fourier", "attention", "identity", "dense_synthesizer"].find((name) => !used.has(name) && aboutMixer(name)) ?? last.mixers[0];
    runs.push({ mixers: last.mixers.map(() => other), lr: last.lr });
    listRuns();
  }
  function layers(by) {
    for (const run of runs) {
      if (by < 0) run.mixers.pop();
      else run.mixers.push(run.mixers.at(-1));
    }
    listRuns();
  }

  async function begin() {
    store.points = {};
    const answer = await post("start", { runs: runs.map((run) => ({ ...settings, ...run })) });
    store.setRuns(answer.runs);
    update({ kind: "runs" });
    if (innerWidth < 900) controls.scrollIntoView({ behavior: "smooth" });
  }

  const control = (run, action) => post("control", { run, action });
  function update(event) {
    if (root.hidden) return;
    if (event.kind === "runs") {
      const some = (states) => store.runs.some((run) => states.includes(run.state));
      const all = (text, action, on, id) => button(text, () => control("all", action), { id, disabled: !on });
      controls.replaceChildren(...(store.runs.length ? [
        some(["running", "starting"]) ? all("Pause", "pause", true, "pause") : all("Go on", "go", some(["paused", "stopped"]), "go-on"),
        all("One step", "step", some(["paused"]), "one-step"), all("Stop", "stop", some(["running", "paused"]), "stop"),
      ] : [el("p", { class: "empty" }, "Nothing runs yet. Choose a task and press Start: the curves appear here.")]));
    }
    if (event.kind !== "size") cards.replaceChildren(...store.runs.map(card));
    plots.draw();
  }

  function card(run, k) {
    const last = store.points[run.run]?.findLast((point) => point.accuracy !== null);
    const state = { running: "training", starting: "starting …" }[run.state] ?? run.state;
    const end = run.n_steps * run.epochs;
    return el("article", { class: "card", "data-run": run.run },
      el("h3", {}, el("i", { class: "dot", style: `background:${colour(k)}` }), nameOfRun(run)),
      el("p", { class: "state" }, el("b", {}, state), ` · epoch ${run.epoch} of ${run.epochs} · step `, el("b", { class: "steps" }, String(run.step)), ` of ${end || "?"}`),
      el("progress", { max: end || 1, value: Math.min(run.step, end || 1), "aria-label": "share of the steps" }),
      el("p", { class: "state" }, `${(run.n_parameters ?? 0).toLocaleString("en")} parameters`,
        last ? [" · validation accuracy ", el("b", { class: "accuracy" }, percent(last.accuracy))] : null),
      run.error ? el("p", { class: "wrong" }, run.error) : null,
      store.runs.length > 1 ? el("p", { class: "line" },
        waits(run) ? button("Go on", () => control(run.run, "go"), { disabled: run.state === "finished" }) : button("Pause", () => control(run.run, "pause")),
        button("One step", () => control(run.run, "step"), { disabled: run.state !== "paused" })) : null);
  }
  return { start, update, show: () => update({ kind: "runs" }) };
}

export const lastLoss = (run) => number(store.points[run.run]?.at(-1)?.loss);
