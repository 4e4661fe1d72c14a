// To start runs: if that would end others, the page says so before, and asks.

import { post } from "./api.js";
import { el, fill } from "./dom.js";
import { colour, endOf, nameOfRun, stepOf, store } from "./store.js";

const UNFINISHED = { starting: "is starting", running: "is training", paused: "is paused", stopped: "was stopped, and could go on" };

export const unfinished = () => store.runs.filter(({ state }) => state in UNFINISHED);

// A question that is answered by a button, Escape (no) or Enter (yes, where the focus is).
function agreed(title, words, yes) {
  return new Promise((answer) => {
    const dialog = el("dialog", { "aria-labelledby": "dialog-title" },
      el("form", { method: "dialog" }, el("h2", { id: "dialog-title" }, title), words,
        el("p", { class: "line" }, el("button", { value: "yes", class: "main" }, yes), el("button", { value: "no", autofocus: true }, "Cancel"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      answer(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Starts runs with these settings; returns whether somebody agreed to what that ends.
export async function begin(settings) {
  const ends = unfinished();
  if (ends.length) {
    const one = ends.length === 1;
    const list = el("ul", {}, ends.map((run) => el("li", {},
      el("i", { class: "dot", style: `background:${colour(store.runs.indexOf(run))}` }), el("b", {}, run.run), ` (${nameOfRun(run)}) ${UNFINISHED[run.state]}, at step ${stepOf(run)}${endOf(run) ? ` of ${endOf(run)}` : ""}`)));
    const words = [list, el("p", {}, `${one ? "It keeps its weights and curves" : "They keep their weights and curves"} in the folder ${store.choices.folder}, and this page shows the new ${settings.length === 1 ? "run" : "runs"} instead.`)];
    if (!(await agreed(one ? "This ends a run" : `This ends ${ends.length} runs`, words, one ? "End it and start" : "End them and start"))) return false;
  }
  const { runs } = await post("start", { runs: settings, ends: ends.map(({ run }) => run) });
  store.setRuns(runs);
  return true;
}
