// A field to draw a digit on. The data set's pictures were made like this: a drawing of 32 x 32 black or
// white points, in blocks of 4 x 4, and the share of black points in each block is one of 8 x 8 numbers.

import { el } from "./dom.js";
import { css } from "./charts.js";

const FINE = 32;
const PEN = 5.6; // width of the stroke, in fine points: about as much ink as in the data

// Strokes are lists of [x, y] between 0 and 1. Fitted: as tall as the picture, and in its middle.
export function asPicture(strokes, fit = true) {
  const points = strokes.flat();
  const image = Array.from({ length: 8 }, () => new Array(8).fill(0));
  if (!points.length) return image;
  const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = FINE - PEN;
  const factor = fit ? Math.min(room / Math.max(bottom - top, 0.15), (room - 4) / Math.max(right - left, 0.15)) : FINE;
  const [dx, dy] = fit ? [FINE / 2 - (factor * (left + right)) / 2, FINE / 2 - (factor * (top + bottom)) / 2] : [0, 0];
  const paper = new OffscreenCanvas(FINE, FINE).getContext("2d", { willReadFrequently: true });
  paper.lineWidth = PEN;
  paper.lineCap = paper.lineJoin = "round";
  for (const stroke of strokes) trace(paper, stroke.map(([x, y]) => [factor * x + dx, factor * y + dy]));
  const alpha = paper.getImageData(0, 0, FINE, FINE).data;
  for (let y = 0; y < FINE; y++)
    for (let x = 0; x < FINE; x++) if (alpha[4 * (y * FINE + x) + 3] > 127) image[y >> 2][x >> 2] += 1 / 16;
  return image;
}

// Through the middles of the pieces, with the corners as control points: a smooth line.
function trace(pen, points) {
  pen.beginPath();
  pen.moveTo(...points[0]);
  if (points.length === 1) pen.lineTo(points[0][0] + 0.01, points[0][1]);
  for (let k = 1; k < points.length - 1; k++) {
    const [[x, y], [nextX, nextY]] = [points[k], points[k + 1]];
    pen.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
  }
  if (points.length > 1) pen.lineTo(...points.at(-1));
  pen.stroke();
}

// changed(image) is called during drawing.
export function drawingField(changed) {
  const size = 256;
  const canvas = el("canvas", {
    class: "paper", width: size, height: size, tabindex: "0", role: "img",
    "aria-label": "Draw a digit here with the mouse or a finger. With the keyboard: arrow keys move a pen, space puts it down or lifts it.",
  });
  const pen = canvas.getContext("2d");
  let strokes = [];
  let stroke = null;
  let [x, y] = [0.5, 0.2]; // of the pen that the arrow keys move
  let down = false;
  let fit = true;

  function redraw() {
    pen.clearRect(0, 0, size, size);
    pen.lineWidth = 32;
    pen.lineCap = pen.lineJoin = "round";
    pen.strokeStyle = css("var(--text)");
    for (const each of strokes) trace(pen, each.map(([a, b]) => [a * size, b * size]));
    if (document.activeElement !== canvas || !canvas.matches(":focus-visible")) return;
    pen.fillStyle = css("var(--plus)");
    pen.beginPath();
    pen.arc(x * size, y * size, down ? 9 : 5, 0, 7);
    pen.fill();
  }
  canvas.again = redraw;
  const tell = () => (redraw(), changed(asPicture(strokes, fit)));
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    stroke = [place(event)];
    strokes.push(stroke);
    tell();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!stroke) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) stroke.push(place(each));
    tell();
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (stroke = null));
  for (const name of ["focus", "blur"]) canvas.addEventListener(name, redraw);
  canvas.addEventListener("keydown", (event) => {
    const [dx, dy] = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key] ?? [];
    if (event.key === " ") {
      down = !down;
      if (down) strokes.push([[x, y]]);
    } else if (dx !== undefined) {
      [x, y] = [Math.min(0.95, Math.max(0.05, x + dx * 0.05)), Math.min(0.95, Math.max(0.05, y + dy * 0.05))];
      if (down) strokes.at(-1).push([x, y]);
    } else return;
    event.preventDefault();
    tell();
  });
  return {
    node: canvas,
    clear: () => ((strokes = []), (down = false), tell()),
    setFit: (value) => ((fit = value), tell()),
    image: () => asPicture(strokes, fit),
    empty: () => !strokes.length,
  };
}
