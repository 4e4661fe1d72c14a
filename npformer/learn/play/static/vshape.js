// The V of a numerical derivative.

import { css, surface } from "./charts.js";

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
