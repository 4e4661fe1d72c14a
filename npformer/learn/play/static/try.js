// "Try it": one view for each kind of model.

import { ask as askRun } from "./api.js";
import { digitView } from "./digit.js";
import { el, fill } from "./dom.js";
import { keyOf, store } from "./store.js";
import { translateView } from "./translate.js";
import { wordsView } from "./words.js";
import { writeView } from "./write.js";

const VIEWS = { image: digitView, ids: wordsView, text: writeView, pair: translateView };

export function tryView(root) {
  let built = null; // the run and the settings that the view was made for
  let view = null;
  let last = 0; // when the answers were last renewed

  function show() {
    const run = store.run;
    if (keyOf(run) === null) return void ((built = null), fill(root, nothing()));
    if (keyOf(run) !== built) {
      built = keyOf(run);
      view = VIEWS[run.kind_of_input]((question, more) => askRun(run.run, question, more), run);
      fill(root, view.node);
    }
    view.renew?.();
  }
  return {
    show,
    // Answers follow the weights during training, once a second: questions take time from the training.
    update(event) {
      if (event.kind === "runs" && keyOf(store.run) !== built) show();
      if (event.kind !== "points" || event.run !== store.run?.run || !built || Date.now() - last < 1000) return;
      last = Date.now();
      view.renew?.();
    },
  };
}

export const nothing = () =>
  el("p", { class: "empty" }, store.run?.state === "stored"
    ? "This run is from an earlier time. “Go on” under “Train” loads its model: then it is here."
    : "Nothing has been trained yet. Choose a task under “Train” and start: after a few steps there is already something to see here.");
