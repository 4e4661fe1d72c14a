// "Train": the settings of up to four runs, their controls, and their curves.

import { post } from "./api.js";
import { begin, unfinished } from "./begin.js";
import { curves } from "./curves.js";
import { button, choice, el, field, fill, percent, tell } from "./dom.js";
import { fitting } from "./fitting.js";
import { colour, endOf, nameOfRun, stepOf, store, trains } from "./store.js";

const NUMBERS = [
  ["d_model", "Width", "numbers that stand for one token (d_model)"],
  ["n_heads", "Heads", "parts into which attention splits the width"],
  ["d_ff", "Inner width", "of the feed-forward network (d_ff)"],
  ["batch_size", "Batch", "samples in one step"],
  ["epochs", "Epochs", "passes through the data"],
  ["dropout", "Dropout", "share of numbers set to 0 while training"],
  ["samples", "Training samples", "(of a text: characters) to learn from; empty: all. Few are soon memorized"],
  ["seed", "Seed", "of the weights and of the order of the data: the same for all runs"],
];
const MOST_RUNS = 4;
const STARTERS = [
  ["digits", ["attention"], "Read handwritten digits", "One small model. Then draw a digit of your own under “Try it”."],
  ["sentences", ["attention"], "Draw overfitting", "200 sentences, 40 epochs, no dropout: within a minute the training loss comes near 0, and the validation loss turns up.", { samples: 200, epochs: 40, dropout: 0, batch_size: 16 }],
  ["digits", ["attention", "fourier", "dense_synthesizer"], "Three ways to mix", "Attention, a Fourier transform and a synthesizer side by side, on the same digits."],
  ["text", ["attention"], "Learn to write", "A language model reads plays, letter by letter, and continues them."],
  ["reverse", ["attention"], "Reverse sequences", "An encoder and a decoder. Its cross-attention learns a diagonal."],
];
const STATES = { running: "training", starting: "starting …", stored: "from an earlier time" };

export function trainView(root) {
  const form = el("form", { class: "card settings" });
  const controls = el("div", { class: "line controls" });
  const cards = el("div", { class: "runs" });
  const plots = curves();
  const more = el("details", { class: "more" }, el("summary", {}, "Sizes and seed"));
  const about = el("p", { class: "about" });
  const rows = el("div", { class: "rows" });
  const fate = el("small", { id: "fate" });
  const examples = el("details", { id: "examples" }, el("summary", {}, "Or begin with an example"));
  let settings = null;
  let runs = []; // {mixers, lr}: what differs
  let parts = []; // of the controls: for all runs, then for each
  let made = null; // the runs that they were made for
  let opening = null; // a file whose columns the server looks up

  function start() {
    if (!store.choices) return;
    const tasks = store.choices.tasks;
    const task = choice(tasks.map(({ name, title }) => [name, title]), tasks[0].name, { id: "task" });
    task.addEventListener("change", () => choose(task.value));
    fill(form,
      el("h2", {}, "A model to train"), field("Task", task), about, el("h3", {}, "Runs side by side"),
      el("p", { class: "about" }, "Each run has the same data in the same order and starts from the same seed. What differs is how its layers mix tokens, and its learning rate."),
      rows, el("details", {}, el("summary", {}, "What these mixers do"),
        el("dl", { class: "mixers" }, store.choices.mixers.map(({ name, about }) => [el("dt", {}, name), el("dd", {}, about)]))), more,
      el("p", { class: "line" }, button("Start", startRuns, { class: "main", id: "start" }), fate), examples);
    form.addEventListener("submit", (event) => event.preventDefault());
    if (store.choices.first) task.value = store.choices.first; // the file that the page was opened with
    choose(task.value);
    fill(root, form, el("div", { class: "live" }, controls, cards, plots.node));
    update({ kind: "runs" });
  }

  const taskOf = (name) => store.choices.tasks.find((each) => each.name === name);
  function choose(name, changes = {}) {
    const task = taskOf(name);
    about.textContent = task.about;
    settings = { ...task.defaults, ...changes };
    runs = [{ mixers: [...settings.mixers], lr: settings.lr }];
    const inputs = NUMBERS.map(([key, label, hint]) => field(label, el("input", {
      type: "number", name: key, min: 0, step: key === "dropout" ? 0.05 : 1, value: settings[key],
      placeholder: key === "samples" ? "all" : null, oninput: (event) => (settings[key] = event.target.valueAsNumber), // empty: NaN, which is sent as null
    }), hint));
    const activation = choice(["gelu", "relu"], settings.activation, { name: "activation", onchange: (event) => (settings.activation = event.target.value) });
    const files = ["file", "text_column", "label_column"].filter(() => ["file", "text"].includes(name)).map((key) => field(
      { file: "File on this machine", text_column: "Column of the text", label_column: "Column of the label" }[key],
      key !== "file" && settings.file === store.choices.file && store.choices.columns.length
        ? choice(store.choices.columns, settings[key] ?? undefined, { name: key, onchange: (event) => (settings[key] = event.target.value) })
        : el("input", {
          type: "text", name: key, value: settings[key] ?? "", oninput: (event) => (settings[key] = event.target.value || null),
          onchange: key === "file" ? () => (opening = settings.file && open(settings.file).catch(tell)) : null,
        })));
    fill(more, more.firstChild, el("div", { class: "fields" }, inputs, field("Activation", activation, "the bend in the feed-forward network; units of ReLU can die")));
    about.after(...files.splice(0, name === "file" ? 3 : 1));
    for (const stale of form.querySelectorAll(":scope > .field.stale")) stale.remove();
    for (const fresh of form.querySelectorAll(":scope > .field")) if (fresh.querySelector("[type=text], select:not(#task)")) fresh.classList.add("stale");
    listRuns();
  }

  // The columns of another file are menus, too, and its number of texts decides the epochs.
  async function open(file) {
    store.choices = await post("choices", { file });
    const [kept, { name }] = [runs, document.activeElement];
    form.querySelector("#task").value = store.choices.first;
    choose(store.choices.first);
    runs = kept;
    listRuns();
    if (name) form.querySelector(`[name=${name}]`)?.focus();
  }

  function listRuns() {
    const mixers = store.choices.mixers.map(({ name }) => name);
    fill(rows, ...runs.map((run, k) => el("fieldset", { class: "run" },
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
      runs[0].mixers.length > 1 ? el("button", { type: "button", id: "fewer-layers", onclick: () => layers(-1) }, "− layer") : null));
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

  async function startRuns() {
    await opening;
    if (!(await begin(runs.map((run) => ({ ...settings, ...run }))))) return;
    update({ kind: "runs" });
    if (innerWidth < 900) controls.scrollIntoView({ behavior: "smooth" });
  }

  function starter([task, mixers, title, about, changes]) {
    return button([title, el("small", {}, about)], async () => {
      form.querySelector("#task").value = task;
      choose(task, changes);
      const { lr, mixers: usual } = taskOf(task).defaults;
      runs = mixers.map((mixer) => ({ mixers: usual.map(() => mixer), lr }));
      listRuns();
      await startRuns();
    });
  }

  const control = (run, action) => post("control", { run, action });

  // Buttons and cards are made once for a set of runs, so that focus and clicks are not lost.
  function make() {
    const starters = el("div", { class: "starters" }, STARTERS.filter(([task]) => taskOf(task)).map(starter));
    examples.hidden = !store.runs.length;
    if (!examples.hidden) fill(examples, examples.firstChild, starters);
    if (!store.runs.length) {
      fill(controls, el("p", { class: "empty" }, "Nothing is running yet. Choose a task and press Start: the curves appear here. Or begin with one of these:"), starters);
      return fill(cards);
    }
    parts = [controller("all"), ...store.runs.map((run) => controller(run.run))];
    fill(controls, parts[0].buttons, el("small", {}, "“Stop” writes a checkpoint, and “Go on” goes on from there."));
    parts.slice(1).forEach((part, k) => Object.assign(part, card(store.runs[k], k, part.buttons)));
    fill(cards, parts.slice(1).map((part) => part.node));
  }

  function controller(whose) {
    const ids = whose === "all" ? ["pause", "one-step", "stop"] : [];
    const of = () => store.runs.filter((run) => whose === "all" || run.run === whose);
    const some = () => of().some(trains);
    const toggle = button("Pause", () => control(whose, some() ? "pause" : "go"), { id: ids[0] });
    const step = button("One step", () => control(whose, "step"), { id: ids[1] });
    const stop = button("Stop", () => control(whose, "stop"), { id: ids[2] });
    return {
      buttons: [toggle, step, stop],
      update() {
        const paused = of().some((run) => run.state === "paused");
        const stopped = of().some((run) => ["stopped", "stored"].includes(run.state));
        toggle.textContent = some() ? "Pause" : "Go on";
        toggle.disabled = !(some() || paused || stopped);
        step.disabled = !(paused || stopped);
        stop.disabled = !(some() || paused);
      },
    };
  }

  function card(first, k, buttons) {
    const words = el("p", { class: "state" });
    const bar = el("progress", { "aria-label": "share of the steps" });
    const result = el("p", { class: "state" });
    const fit = el("p", { class: "state fitting", role: "status" });
    const error = el("p", { class: "wrong" });
    const controller = parts[k + 1].update;
    let told = false;
    const update = () => {
      controller();
      const run = store.runs[k];
      const points = store.points[run.run] ?? [];
      const step = stepOf(run);
      const end = endOf(run);
      const best = points.findLast((point) => point.accuracy !== null);
      fill(words, el("b", { class: "named-state" }, STATES[run.state] ?? run.state), ` · epoch ${end ? Math.min(run.epochs, Math.ceil((run.epochs * step) / end)) : Math.min(1, step)} of ${run.epochs} · step `,
        el("b", { class: "steps" }, String(step)), end ? ` of ${end}` : null, run.state === "stored" ? " · “Go on” loads it" : null);
      [bar.max, bar.value] = [end || 1, Math.min(step, end)];
      const size = run.n_parameters ? `${run.n_parameters.toLocaleString("en")} parameters` : null; // 0: not known yet
      fill(result, size, size && best ? " · " : null,
        best ? ["validation accuracy ", el("b", { class: "accuracy" }, percent(best.accuracy)), run.held_out ? ` of ${run.held_out} samples` : null] : null,
        best && typeof run.alone === "number" ? ["; always the most frequent label: ", el("b", {}, percent(run.alone))] : null);
      const found = fitting(points);
      if (found && fit.textContent !== found.words) fit.textContent = found.words;
      fit.classList.toggle("over", Boolean(found?.over));
      fit.setAttribute("aria-live", found?.over && !told ? "polite" : "off"); // said once, and not after each epoch
      told = Boolean(found?.over);
      error.textContent = run.error ?? "";
    };
    const node = el("article", { class: "card", "data-run": first.run },
      el("h3", {}, el("i", { class: "dot", style: `background:${colour(k)}` }), nameOfRun(first)),
      words, bar, result, fit, error, store.runs.length > 1 ? el("p", { class: "line" }, buttons) : null);
    return { node, update };
  }

  function update(event) {
    if (root.hidden || !store.choices) return;
    const ends = unfinished().map(({ run }) => run).join(", ");
    fate.textContent = store.runs.length ? `${ends ? `Ends ${ends} if you say so, and shows` : "Shows"} the new runs instead. What the present ones learned stays in the folder ${store.choices.folder}.` : "";
    const key = store.runs.map((run) => run.run + JSON.stringify(run.settings)).join();
    if (key !== made) make();
    made = key;
    if (event.kind !== "size") for (const part of store.runs.length ? parts : []) part.update();
    plots.draw();
  }
  return { start, update, show: () => update({ kind: "runs" }) };
}
