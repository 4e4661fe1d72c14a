// "Break it": a bug of the museum in one model, beside the same model without it.

import { post } from "./api.js";
import { ROUNDING, judged } from "./angles.js";
import { angleLabel } from "./axes.js";
import { begin } from "./begin.js";
import { curves } from "./curves.js";
import { button, choice, el, field, fill, number } from "./dom.js";
import { colourOfDepth, lineChart } from "./charts.js";
import { colour, endOf, layersOf, nameOfRun, perEpoch, short, stepOf, store } from "./store.js";

const STATES = { running: "training", starting: "starting …", stored: "from an earlier time" };

export function breakView(root) {
  const about = el("div", { class: "bug" });
  const answer = el("section", { class: "card", hidden: true });
  const plots = curves();
  const turned = lineChart("Angle between the right gradient and the wrong one, in each layer",
    "Both with the same weights, samples and dropout. 0° is right; beyond 90° a step goes uphill. A bug that the curves hide is seen here.",
    { scales: ["even", "log"], floor: [0, 0.02], format: (x) => `${number(x, 3)}°`, axis: angleLabel });
  const found = el("p", { id: "angles" });
  const judgement = el("p", { id: "judgement" });
  const ahead = el("section", { class: "card", id: "ahead" }, el("h3", {}, "What you will see here"), el("ul", {},
    el("li", {}, "By how many degrees the bug turns the gradient of each layer, and whether that is much."),
    el("li", {}, "The losses and accuracies of both models in one chart: begun with the same weights, trained on the same batches."),
    el("li", {}, "Without any training: what gradcheck says about the layer with the bug, gradient by gradient.")));
  const words = el("p", { class: "about" });
  let bug = null;

  function start() {
    const bugs = store.choices?.bugs ?? [];
    if (!bugs.length) return;
    const select = choice(bugs.map(({ name, title }) => [name, title]), bugs[0].name, { id: "bug" });
    const choose = () => {
      answer.hidden = true; // it is about another bug
      bug = bugs.find(({ name }) => name === select.value);
      fill(about,
        el("p", {}, el("b", {}, "Why it is wrong. "), bug.why), el("p", {}, el("b", {}, "What it costs. "), bug.cost),
        bug.code ? el("details", {}, el("summary", {}, "The wrong lines"), el("pre", {}, el("code", {}, bug.code))) : null);
    };
    select.addEventListener("change", choose);
    choose();
    fill(root,
      el("section", { class: "card" }, el("h2", {}, "Put a bug into the model"),
        el("p", { class: "about" }, "All of these bugs were made by people who wrote a Transformer by hand. Most of these models train: the curves look plausible, only somewhat worse. That is why gradients are checked, and not only curves."),
        field("The bug", select), about,
        el("p", { class: "line" }, button("Train it beside the healthy model", train, { class: "main", id: "break-start" }),
          button("What does gradcheck say?", check, { id: "gradcheck" }),
          el("small", {}, "Both models are trained on handwritten digits, whatever the present runs learn; if that would end a run, you are asked before. Gradcheck needs no training, and disturbs none.")), words),
      answer, ahead, turned.node, found, judgement, plots.node);
    update({ kind: "runs" });
  }

  const broken = () => store.runs.find((run) => run.settings.bug);

  async function train() {
    const task = store.choices.tasks.find(({ name }) => name === (bug.task ?? "digits")) ?? store.choices.tasks[0];
    const settings = { ...task.defaults, ...bug.settings };
    if (await begin([{ ...settings, bug: null }, { ...settings, bug: bug.name }])) update({ kind: "runs" });
  }

  // Answered by the server in a process beside the runs, which go on.
  async function check() {
    const asked = bug;
    const found = await post("gradcheck", { bug: asked.name });
    if (asked !== bug) return; // another one was chosen meanwhile
    const wrong = found.tensors.filter(({ ok }) => !ok).length;
    answer.hidden = false;
    fill(answer,
      el("h3", {}, `Gradcheck on “${asked.title.replace(/\.$/, "")}”`),
      el("p", { class: wrong ? "wrong" : "right", id: "verdict" }, wrong
        ? `${wrong} of ${found.tensors.length} gradients are wrong.`
        : "All gradients are right: they are the true gradients of a wrong function. Another check finds this bug."),
      found.tensors.length ? el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, ["gradient of", "relative error", ""].map((each) => el("th", {}, each)))),
        el("tbody", {}, found.tensors.map(({ name, error, ok }) => el("tr", {},
          el("td", {}, el("code", {}, name)), el("td", { class: "number" }, number(error, 3)), el("td", { class: ok ? "right" : "wrong" }, ok ? "right" : "wrong")))))) : null,
      found.caught_by?.length ? el("p", {}, el("b", {}, "Caught by: "), found.caught_by.join(", ").replaceAll("_", " "), ".") : null,
      found.right ? el("details", {}, el("summary", {}, "The right lines"), el("pre", {}, el("code", {}, found.right))) : null,
      found.report ? el("details", {}, el("summary", {}, "The report, as a terminal shows it"), el("pre", {}, found.report)) : null);
    answer.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  function update() {
    if (root.hidden) return;
    const run = broken();
    const measured = run ? (store.points[run.run] ?? []).filter((point) => point.angles) : [];
    plots.node.classList.toggle("off", !run || !store.runs.every((each) => store.points[each.run]?.length));
    ahead.hidden = Boolean(run);
    turned.node.hidden = judgement.hidden = !measured.length;
    found.hidden = !run;
    if (!run) return void fill(words);
    const { title } = store.choices.bugs.find(({ name }) => name === run.settings.bug) ?? { title: run.settings.bug };
    fill(words, el("span", { style: "display:block" }, `The bug below: ${title}`), ...store.runs.map((each, k) =>
      el("span", { style: "display:inline-block;margin-right:1rem" }, el("i", { class: "dot", style: `background:${colour(k)}` }), `${nameOfRun(each)}: ${STATES[each.state] ?? each.state}, step ${stepOf(each)}${endOf(each) ? ` of ${endOf(each)}` : ""}${each.error ? `. ${each.error}` : ""}`)));
    if (measured.length) showAngles(run, measured);
    else found.textContent = run.state === "stored" ? "No angles were measured in this run before it was stopped." : run.error ? "" : "The model with the bug is on its way: its first angles come with its first steps.";
    plots.draw();
  }

  function showAngles(run, measured) {
    const layers = layersOf(run, "angles");
    turned.draw(layers.map((name, k) => ({
      name: short(name, layers), colour: colourOfDepth(k, layers.length), points: measured.map((point) => [point.step, point.angles[k]]).filter(([, angle]) => angle !== null),
    })), { perEpoch: perEpoch(run) });
    const last = measured.at(-1);
    const off = layers.map((name, k) => [short(name, layers), last.angles[k], last.apart?.[k]]).filter(([, angle]) => angle >= ROUNDING);
    found.textContent = `After step ${last.step} ${off.length ? `the bug turns the gradient of ${off.map(([name, angle]) => `${name} by ${number(angle, 3)}°`).join(", of ")}.` : "no gradient is turned by more than rounding."}`;
    const [, angle, apart] = off.reduce((most, each) => (each[1] > most[1] ? each : most), ["", -1]);
    judgement.textContent = angle > 0 ? judged(angle, apart) : "So the gradients are right, of a wrong function; or these samples and weights do not meet the bug yet. “What does gradcheck say?” names what catches it.";
  }
  return { start, update, show: () => update({ kind: "runs" }) };
}
