// Tabs, events and the choice of a run: what surrounds the four views.

import { listen, post } from "./api.js";
import { breakView } from "./break.js";
import { button, el, fill, tell } from "./dom.js";
import { stepView } from "./step.js";
import { colour, nameOfRun, store } from "./store.js";
import { trainView } from "./train.js";
import { tryView } from "./try.js";

const $ = (id) => document.getElementById(id);
const views = {
  train: trainView($("train")),
  step: stepView($("step")),
  try: tryView($("try")),
  break: breakView($("break"), () => show("train")),
};
const tabs = [...document.querySelectorAll("[role=tab]")];
const current = () => tabs.find((tab) => tab.ariaSelected === "true").getAttribute("aria-controls");

function show(name, focus) {
  for (const tab of tabs) {
    const chosen = tab.getAttribute("aria-controls") === name;
    tab.ariaSelected = String(chosen);
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
    if (chosen && focus) tab.focus();
  }
  history.replaceState(null, "", `#${name}`);
  pick();
  views[name].show();
}

tabs.forEach((tab, k) => {
  tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) show(tabs[(k + by + tabs.length) % tabs.length].getAttribute("aria-controls"), true);
  });
});

// Which run the views "See a step" and "Try it" look into.
function pick() {
  const needed = store.runs.length > 1 && ["step", "try"].includes(current());
  $("picker").hidden = !needed;
  if (!needed) return;
  fill($("picker"), el("span", {}, "Look into"), ...store.runs.map((run, k) =>
    el("label", {},
      el("input", {
        type: "radio", name: "run", checked: store.run === run,
        onchange: () => {
          store.selected = run.run;
          views[current()].show();
        },
      }),
      el("i", { class: "dot", style: `background:${colour(k)}` }), nameOfRun(run))));
}

function onEvent(event) {
  if (event.kind === "runs") {
    const before = store.runs.map((run) => run.run + run.state + nameOfRun(run)).join();
    store.setRuns(event.runs);
    if (before !== store.runs.map((run) => run.run + run.state + nameOfRun(run)).join()) pick();
  } else if (event.kind === "points") store.addPoints(event.run, event.points);
  views[current()].update(event);
}

function onState(live) {
  $("connection").textContent = live ? "live" : "reconnecting …";
  $("connection").classList.toggle("lost", !live);
}

$("message").querySelector("button").addEventListener("click", () => ($("message").hidden = true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => views[current()].show());
addEventListener("resize", () => views[current()].update({ kind: "size" }));

$("export").replaceWith(button("Export", async () => {
  if (!store.run) throw new Error("Nothing to export yet: start a run first.");
  const { html } = await post("export", { run: store.run.run });
  const address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  el("a", { href: address, download: `npformer-${store.run.run}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}, { id: "export", title: "Save this run as one file that works without a server" }));

try {
  store.choices = await post("choices");
} catch (error) {
  tell(error);
}
for (const view of Object.values(views)) view.start?.();
show(tabs.some((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) ? location.hash.slice(1) : "train");
listen(onEvent, onState);
