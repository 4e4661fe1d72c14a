// What all views share: the runs, their points, and which run is inspected.

export const store = {
  choices: null, // tasks, mixers, bugs, limits
  runs: [],
  points: {}, // run -> its points, in order
  selected: null,

  get run() {
    return this.runs.find((run) => run.run === this.selected) ?? this.runs[0] ?? null;
  },
  setRuns(runs) {
    const known = new Set(runs.map(({ run }) => run));
    for (const run of Object.keys(this.points)) if (!known.has(run)) delete this.points[run];
    this.runs = runs;
  },
  // After connecting, all points so far are sent again; a run that started over counts from 1 again.
  addPoints(run, points) {
    if (!points.length) return;
    const old = this.points[run] ?? [];
    const first = points[0]; // without a loss it is the evaluation after an earlier step
    const kept = old.filter((point) => point.step < first.step || (point.step === first.step && first.loss === null));
    this.points[run] = thin_out(kept.concat(points));
  },
};

const MOST = 1600;

function thin_out(points) {
  if (points.length < MOST) return points;
  const late = points.length - MOST / 4;
  return points.filter((point, k) => k % 2 || k >= late || point.loss === null);
}

export const nameOfRun = (run) => {
  const mixers = run.settings.mixers;
  const same = mixers.every((mixer) => mixer === mixers[0]);
  const words = same ? mixers[0] : mixers.join(" + ");
  return run.settings.bug ? `${words}, with the bug` : words;
};
// Dotted names, without "encoder." where there is no decoder beside it.
export const short = (name, all) => (all.some((each) => each.startsWith("decoder.")) ? name : name.replace(/^encoder\./, ""));
// Words have spaces between them, letters do not.
export const spoken = (run, tokens) => (tokens ?? []).join(["text", "pair"].includes(run.kind_of_input) ? "" : " ");
export const colour = (k) => `var(--run-${k % 4})`;
export const colourOfRun = (run) => colour(store.runs.indexOf(run));
// Points come more often than news of the run itself.
export const stepOf = (run) => Math.max(run.step, store.points[run.run]?.at(-1)?.step ?? 0);
// Steps of an epoch; 0 while nobody knows. Of a run from an earlier time its last whole epoch tells.
export const perEpoch = (run) => {
  const whole = store.points[run.run]?.findLast((point) => point.epoch && (run.by_epoch || point.loss === null));
  return run.n_steps || (whole ? whole.step / whole.epoch : 0);
};
// Steps in all.
export const endOf = (run) => run.epochs * perEpoch(run);
// The layers whose figures a point has; those of a run from an earlier time have numbers.
export const layersOf = (run, figures) => {
  if (run.layers?.length) return run.layers;
  const n = store.points[run.run]?.findLast((point) => point[figures])?.[figures].length ?? 0;
  return Array.from({ length: n }, (_, k) => `part ${k + 1} of ${n}`);
};
// What a view of a run was made for; null while there is no model to inspect.
export const keyOf = (run) => (run && !["starting", "stored"].includes(run.state) ? run.run + JSON.stringify(run.settings) : null);
export const trains = (run) => ["running", "starting"].includes(run?.state);
