// Small line charts on a canvas, with steps and epochs below.

import { SCALES, labels, plainLabel, range, wholeTicks } from "./axes.js";
import { choice, el, fill, number } from "./dom.js";

const LEFT = 50;
const RIGHT = 14;
const TOP = 10;

// Colours of the style sheet, as numbers that a canvas understands.
export function css(name) {
  const variable = name.match(/^var\((.*)\)$/)?.[1];
  return variable ? getComputedStyle(document.documentElement).getPropertyValue(variable).trim() : name;
}

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

// First layers blue, last ones orange.
export const colourOfDepth = (k, n) =>
  `hsl(${210 + (n > 1 ? k / (n - 1) : 0) * 180} 62% ${isDark() ? 66 : 45}%)`;

// A canvas knows nothing of the style sheet: each that has `again` is painted anew when light turns to dark.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const canvas of document.querySelectorAll("canvas")) canvas.again?.();
});

export function surface(canvas, height) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth || 300;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  return [pen, width];
}

// series: {name, colour, points: [[step, y]...], faint, dash, mark}; a mark is a point with a ring.
// Options: scales (names; the first is the usual one), prefer (of the lines shown, a scale), format, axis, empty, height, floor.
export function lineChart(title, about, options = {}) {
  const scales = options.scales ?? ["even"];
  const height = options.height ?? 170;
  const canvas = el("canvas", { class: "chart", role: "application", "aria-roledescription": "chart", tabindex: "0", style: `height:${height}px` });
  const legend = el("ul", { class: "legend" });
  const spoken = el("output", { class: "hidden-words" });
  const axis = scales.length > 1 ? choice(scales.map((name) => [name, SCALES[name].words]), scales[0], { "aria-label": `axis of ${title}`, class: "axis", onchange: () => ((preferred = false), draw()) }) : null;
  const node = el("figure", { class: "card plot" },
    el("figcaption", {}, el("b", {}, title), axis, el("small", {}, about)), canvas, legend, spoken);
  const format = options.format ?? ((x) => number(x, 3));
  const off = new Set(); // names of lines that a click on the legend hides
  let preferred = Boolean(options.prefer); // whether the chart chooses its axis
  let shown = [];
  let legendOf = null; // the names that the legend was made for
  let view = {}; // from: the first step shown; perEpoch: steps of an epoch, if it is known
  let at = null; // the step under the pointer, or that the arrow keys came to
  let place = null; // how steps and values become pixels

  const within = ({ name, points }) => off.has(name) ? [] : points.filter(([x, y]) => x >= (view.from ?? 0) && Number.isFinite(y) && place.scale.has(y));
  const lines = () => shown.filter((each) => !each.faint && each.points.length);

  function draw(series, how) {
    shown = series ?? shown;
    view = how ?? view;
    if (preferred) axis.value = options.prefer(shown.filter(({ name, points }) => points.length && !off.has(name)));
    const [pen, width] = surface(canvas, height);
    place = { scale: SCALES[axis?.value ?? scales[0]], width };
    const all = shown.flatMap(within);
    pen.fillStyle = css("var(--soft)");
    drawLegend();
    if (!all.length) {
      const why = off.size ? "every line is hidden: choose one below" : options.empty ?? "nothing yet";
      pen.fillText(why, 4, height / 2);
      canvas.setAttribute("aria-label", `${title}: ${why}`);
      return;
    }
    measure(all, view.perEpoch ? 34 : 20);
    drawAxes(pen);
    for (const each of shown) drawLine(pen, each);
    drawCursor(pen);
  }

  function measure(all, below) {
    const { scale, width } = place;
    const xs = all.map(([x]) => x);
    const values = all.map(([, y]) => y);
    values.push(...(options.floor ?? []).filter(scale.has));
    const [first, last] = [view.from ?? Math.min(0, ...xs), Math.max(1, ...xs)];
    const [low, high] = range(values, scale);
    const bottom = height - below;
    Object.assign(place, {
      first, last, bottom, ticks: scale.ticks(scale.down(low), scale.down(high)),
      toX: (x) => LEFT + ((x - first) / (last - first || 1)) * (width - LEFT - RIGHT),
      toStep: (pixel) => first + ((pixel - LEFT) / (width - LEFT - RIGHT)) * (last - first),
      toY: (y) => TOP + (1 - (scale.up(y) - low) / (high - low)) * (bottom - TOP),
    });
  }

  function drawAxes(pen) {
    const { toX, toY, first, last, bottom, width } = place;
    pen.lineWidth = 1;
    pen.strokeStyle = css("var(--line)");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const ticks = [];
    for (const tick of [...place.ticks].reverse()) { // the greatest first; none upon another
      const y = toY(tick);
      if (y >= TOP - 1 && y <= bottom + 1 && (!ticks.length || y - toY(ticks.at(-1)) >= 13)) ticks.push(tick);
    }
    const texts = labels(ticks, options.axis ?? plainLabel);
    ticks.forEach((tick, k) => {
      stroke(pen, [[LEFT, toY(tick)], [width - RIGHT, toY(tick)]]);
      pen.fillText(texts[k], LEFT - 6, toY(tick));
    });
    stroke(pen, [[LEFT, bottom], [width - RIGHT, bottom]]);
    pen.textAlign = "center";
    const most = Math.max(2, Math.floor((width - LEFT) / 70));
    const row = (name, marks, toPixel, y) => {
      for (const mark of marks) {
        pen.fillText(String(mark), toPixel(mark), y);
        stroke(pen, [[toPixel(mark), bottom], [toPixel(mark), bottom + 3]]);
      }
      pen.textAlign = "right";
      pen.fillText(name, LEFT - 12, y);
      pen.textAlign = "center";
    };
    row("step", wholeTicks(first, last, most), toX, bottom + 11);
    const { perEpoch } = view;
    if (perEpoch) row("epoch", wholeTicks(Math.ceil(first / perEpoch), Math.floor(last / perEpoch), most), (epoch) => toX(epoch * perEpoch), bottom + 25);
  }

  function drawLine(pen, each) {
    const { toX, toY } = place;
    const points = within(each).map(([x, y]) => [toX(x), toY(y)]);
    pen.strokeStyle = pen.fillStyle = css(each.colour);
    pen.globalAlpha = each.faint ? 0.25 : 1;
    pen.lineWidth = each.faint ? 1 : 1.8;
    pen.setLineDash(each.dash ?? []);
    pen.lineJoin = "round";
    stroke(pen, points);
    pen.setLineDash([]);
    if (points.length === 1) pen.fillRect(points[0][0] - 2, points[0][1] - 2, 4, 4);
    if (each.mark && each.mark[0] >= place.first) {
      pen.beginPath();
      pen.arc(toX(each.mark[0]), toY(each.mark[1]), 5, 0, 7);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  function drawCursor(pen) {
    if (at === null) return;
    pen.strokeStyle = css("var(--text)");
    pen.lineWidth = 1;
    stroke(pen, [[place.toX(at), TOP - 4], [place.toX(at), place.bottom]]);
  }

  const words = (each) => [`${each.name} `, format(nearest(each.points, at ?? Infinity)[1])];

  // A button for each line, which hides it and shows it again; made once, so that focus is not lost.
  function drawLegend() {
    const names = lines().map((each) => each.name + each.colour + Boolean(each.dash)).join();
    if (names !== legendOf) fill(legend, el("li"), lines().map(legendItem));
    legendOf = names;
    legend.firstChild.textContent = at === null ? "" : stepWords(at);
    lines().forEach((each, k) => {
      const toggle = legend.children[k + 1].firstChild;
      toggle.ariaPressed = String(!off.has(each.name));
      toggle.lastChild.textContent = words(each)[1];
    });
    canvas.setAttribute("aria-label", `${title}, at the end: ${lines().map((each) => words(each).join("")).join(", ")}. Arrow keys go from step to step.`);
  }

  const legendItem = ({ name, colour, dash }) => el("li", {}, el("button", {
    type: "button", title: "show or hide this line", onclick: () => (off.delete(name) || off.add(name), draw()),
  }, el("i", { class: dash ? "dashed" : "", style: `--line-colour:${colour}` }), `${name} `, el("b")));

  const stepWords = (step) => `step ${step}${view.perEpoch ? `, epoch ${number(step / view.perEpoch, 3)}` : ""}: `;

  function look(step) {
    at = step;
    draw();
  }
  // The steps of the longest line: arrow keys go along it.
  const longest = () => lines().map(within).reduce((most, points) => (points.length > most.length ? points : most), []);

  canvas.addEventListener("pointermove", (event) => {
    const points = longest();
    if (points.length) look(event.offsetX < LEFT ? null : nearest(points, place.toStep(event.offsetX))[0]);
  });
  canvas.addEventListener("pointerleave", () => look(null));
  canvas.addEventListener("blur", () => look(null));
  canvas.addEventListener("keydown", (event) => {
    const steps = longest().map(([x]) => x);
    if (!steps.length) return;
    const here = at === null ? steps.length : steps.findIndex((step) => step >= at);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, PageUp: here - 10, PageDown: here + 10, Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    look(steps[Math.min(Math.max(to, 0), steps.length - 1)]);
    spoken.textContent = stepWords(at) + lines().map((each) => words(each).join("")).join(", ");
  });
  canvas.again = () => draw();
  return { node, draw };
}

function stroke(pen, points) {
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.stroke();
}

function nearest(points, x) {
  let best = points[points.length - 1];
  for (const point of points) if (Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best;
}

// A line through the noise of single batches.
export function smoothed(points, share = 0.08) {
  let mean = null;
  return points.map(([x, y]) => {
    mean = mean === null || !Number.isFinite(mean) ? y : mean + share * (y - mean);
    return [x, mean];
  });
}
