// The axes of a chart: from a value to its place, and the numbers that stand beside it.

import { number, percent } from "./dom.js";

const LEAST_ERROR = 5e-4; // of an accuracy: a logarithm does not come to 100 %

// Numbers at equal distances, of one or two digits.
export function evenTicks(low, high, most = 5) {
  const raw = (high - low) / most || 1;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw * (1 - 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9) + 1e-12; k++) ticks.push(k * step);
  return ticks;
}

// Whole numbers, of steps or epochs.
export const wholeTicks = (low, high, most) => [...new Set(evenTicks(low, high, most).map(Math.round))].filter((k) => k >= low && k <= high);

function powerTicks(low, high) {
  const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const step = Math.max(1, Math.ceil((to - from) / 4));
  const ticks = [];
  for (let k = from; k <= to; k += step) ticks.push(10 ** k);
  if (ticks.length > 1) return ticks;
  const base = 10 ** Math.floor(Math.log10(low));
  const within = [1, 2, 5, 10, 20, 50].map((factor) => factor * base).filter((x) => x >= low && x <= high);
  return within.length > 1 ? within : evenTicks(low, high, 4);
}

const error = (share) => Math.max(1 - share, LEAST_ERROR);
const ROUND_SHARES = [0, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999];

// Of accuracies by the share of wrong answers, in powers: 98 to 98.3 % is as far as 80 to 83 %.
function errorTicks(low, high) {
  if (error(low) < 3 * error(high)) return evenTicks(low, Math.min(high, 1), 5);
  const ticks = ROUND_SHARES.filter((share) => share >= low && share <= high);
  return high >= 1 - LEAST_ERROR ? [...ticks, 1] : ticks;
}

// `up` turns a value into a height; a value without one is left out.
export const SCALES = {
  even: { words: "even", up: (y) => y, down: (height) => height, ticks: evenTicks, has: () => true },
  log: { words: "logarithmic", up: Math.log10, down: (height) => 10 ** height, ticks: powerTicks, has: (y) => y > 0 },
  error: {
    words: "stretched near 100 %", up: (y) => -Math.log10(error(y)), down: (height) => 1 - 10 ** -height, ticks: errorTicks, has: (y) => y <= 1,
  },
};

// Room above and below the curves, so that their ends are not at the edge.
export function range(values, scale, room = 0.06) {
  const heights = values.map(scale.up);
  let [low, high] = [Math.min(...heights), Math.max(...heights)];
  if (high - low < 1e-9 * Math.max(Math.abs(low), 1e-30)) {
    const half = scale === SCALES.even ? Math.abs(low) / 2 || 0.5 : 0.15;
    [low, high] = [low - half, high + half];
  }
  const more = room * (high - low);
  return [low - more, high + more];
}

// A label for each tick, with as many digits as tell them apart.
export function labels(ticks, format) {
  for (let digits = 2; digits < 6; digits++) {
    const texts = ticks.map((tick) => format(tick, digits));
    if (new Set(texts).size === ticks.length) return texts;
  }
  return ticks.map((tick) => format(tick, 6));
}

export const shareLabel = (share, digits) => `${Number((100 * share).toPrecision(digits))} %`;
export const plainLabel = (y, digits) => number(y, digits);
export const angleLabel = (y, digits) => `${number(y, digits)}°`;
export const fullShare = (share) => (share === null ? "–" : percent(share));
