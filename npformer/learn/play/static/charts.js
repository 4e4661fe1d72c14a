// Small line charts on a canvas.

import { el, fill, number } from "./dom.js";

const HEIGHT = 150;
const LEFT = 46;
const BELOW = 18;

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

function ticks(low, high, log) {
  if (log) {
    const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
    const step = Math.max(1, Math.ceil((to - from) / 4));
    const found = [];
    for (let k = from; k <= to; k += step) found.push(10 ** k);
    if (found.length > 1) return found;
    const within = [1, 2, 5, 10, 20, 50].map((factor) => factor * 10 ** Math.floor(Math.log10(low))).filter((x) => x >= low && x <= high);
    return within.length ? within : [low, high];
  }
  const raw = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-9); k++) found.push(k * step);
  return found;
}

// series: {name, colour, points: [[x, y]...], faint}. Options: log, low, high, format, unit.
export function lineChart(title, about, options = {}) {
  const canvas = el("canvas", { class: "chart", role: "img" });
  const legend = el("ul", { class: "legend" });
  const node = el("figure", { class: "card plot" },
    el("figcaption", {}, el("b", {}, title), el("small", {}, about)), canvas, legend);
  const format = options.format ?? ((x) => number(x, 3));
  const onAxis = options.axis ?? format;
  let shown = [];
  let at = null; // the step under the pointer

  function draw(series) {
    shown = series ?? shown;
    const [pen, width] = surface(canvas, HEIGHT);
    const all = shown.flatMap((each) => each.points).filter(([, y]) => Number.isFinite(y) && (!options.log || y > 0));
    pen.fillStyle = css("var(--soft)");
    if (!all.length) {
      pen.fillText(options.empty ?? "nothing yet", 4, HEIGHT / 2);
      fill(legend);
      return;
    }
    let [low, high, most] = [options.low ?? Infinity, options.high ?? -Infinity, 1];
    for (const [x, y] of all) {
      if (options.low === undefined || y < low) low = Math.min(low, y);
      if (y > high) high = y;
      if (x > most) most = x;
    }
    if (low === high) [low, high] = options.log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const up = options.log ? Math.log10 : (y) => y;
    const toX = (x) => LEFT + (x / most) * (width - LEFT - 6);
    const toY = (y) => 6 + (1 - (up(y) - up(low)) / (up(high) - up(low))) * (HEIGHT - BELOW - 8);
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of ticks(low, high, options.log)) {
      pen.strokeStyle = css("var(--line)");
      pen.beginPath();
      pen.moveTo(LEFT, toY(tick));
      pen.lineTo(width - 6, toY(tick));
      pen.stroke();
      pen.fillText(onAxis(tick), LEFT - 6, toY(tick));
    }
    pen.textBaseline = "alphabetic";
    pen.fillText(`step ${at ?? most}`, at === null ? width - 6 : Math.min(Math.max(toX(at) + 20, 90), width - 6), HEIGHT - 3);
    for (const each of shown) {
      pen.strokeStyle = css(each.colour);
      pen.globalAlpha = each.faint ? 0.25 : 1;
      pen.lineWidth = each.faint ? 1 : 1.8;
      pen.beginPath();
      for (const [x, y] of each.points) if (Number.isFinite(y) && (!options.log || y > 0)) pen.lineTo(toX(x), toY(y));
      pen.stroke();
      if (each.points.length === 1) pen.strokeRect(toX(each.points[0][0]) - 1, toY(each.points[0][1]) - 1, 2, 2);
    }
    pen.globalAlpha = 1;
    if (at !== null) {
      pen.strokeStyle = css("var(--soft)");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(toX(at), 4);
      pen.lineTo(toX(at), HEIGHT - BELOW);
      pen.stroke();
    }
    const items = shown.filter((each) => !each.faint && each.points.length).map((each) => {
      const value = format(nearest(each.points, at ?? Infinity)[1]);
      return el("li", {}, el("i", { style: `background:${each.colour}` }), `${each.name} `, el("b", {}, value));
    });
    fill(legend, ...items);
    canvas.setAttribute("aria-label", `${title}: ${items.map((item) => item.textContent).join(", ")}`);
    canvas.onpointermove = (event) => {
      const x = ((event.offsetX - LEFT) / (width - LEFT - 6)) * most;
      at = x < 0 ? null : Math.round(nearest(shown[0].points, x)?.[0] ?? x);
      draw();
    };
    canvas.onpointerleave = () => {
      at = null;
      draw();
    };
  }
  return { node, draw };
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

// The V: error of central differences over the size of their step, both axes in powers of ten.
export function plotV(canvas, differences, chosen, exact) {
  canvas.again = () => plotV(canvas, differences, chosen, exact);
  const height = 220;
  const [pen, width] = surface(canvas, height);
  const floor = 1e-17;
  const points = differences.map(({ h, error }) => [Math.log10(h), Math.log10(Math.max(Math.abs(error), floor))]);
  if (exact !== null) points.push([null, Math.log10(Math.max(Math.abs(exact), floor))]);
  const ys = points.map(([, y]) => y).filter(Number.isFinite);
  const xs = points.map(([x]) => x).filter((x) => x !== null);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.floor(Math.min(...ys)), Math.ceil(Math.max(...ys) + 0.01)];
  const toX = (x) => 52 + ((x - left) / (right - left)) * (width - 66);
  const toY = (y) => 10 + ((high - y) / (high - low)) * (height - 46);
  const power = (k) => `1e${k}`.replace("-", "−");
  pen.fillStyle = css("var(--soft)");
  pen.strokeStyle = css("var(--line)");
  const every = (span) => Math.max(1, Math.ceil(span / 6));
  pen.textAlign = "right";
  for (let k = low; k <= high; k += every(high - low)) {
    pen.strokeRect(52, toY(k), width - 66, 0);
    pen.fillText(power(k), 46, toY(k) + 4);
  }
  pen.textAlign = "center";
  for (let k = Math.ceil(left); k <= right; k += 2) pen.fillText(power(k), toX(k), height - 20);
  pen.fillText("size h of the step", 52 + (width - 66) / 2, height - 4);
  pen.strokeStyle = css("var(--run-0)");
  pen.lineWidth = 2;
  pen.beginPath();
  for (const [x, y] of points) if (x !== null && Number.isFinite(y)) pen.lineTo(toX(x), toY(y));
  pen.stroke();
  if (exact !== null) {
    pen.strokeStyle = css("var(--run-2)");
    pen.setLineDash([5, 4]);
    const y = toY(points[points.length - 1][1]);
    pen.beginPath();
    pen.moveTo(52, y);
    pen.lineTo(width - 14, y);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = css("var(--run-2)");
    pen.textAlign = "right";
    pen.fillText("complex step", width - 16, y - 5);
  }
  const [x, y] = points[chosen];
  pen.fillStyle = css("var(--run-1)");
  pen.beginPath();
  pen.arc(toX(x), toY(y), 5, 0, 7);
  pen.fill();
}
