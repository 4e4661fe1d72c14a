// Drawing: lines, dots, words and bars as SVG.

const svg = (width, height, inside) => `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${inside}</svg>`;
const path = (points, kind) => `<polyline class="${kind}" points="${points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ")}"/>`;
const circle = ([x, y], kind, r = 4) => `<circle class="${kind}" cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${r}"/>`;
const words = ([x, y], text, anchor = "middle") => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(text)}</text>`;
// A map from data to a frame of a width and a height: [x0, x1] from left to right, [y0, y1] from the bottom up.
const scale = (width, height, [x0, x1], [y0, y1]) => ([x, y]) => [((x - x0) / (x1 - x0)) * width, height - ((y - y0) / (y1 - y0)) * height];

// Bars beside each other for rows of the same length, from the line of 0; `weights` names those that are weights.
// A gradient's bars are hollow, like the ring in front of its name.
function bars(rows, weights = []) {
  const names = Object.keys(rows);
  const [n, high, wide] = [rows[names[0]].length, 110, 34];
  const values = names.flatMap((name) => [...rows[name]]);
  const [low, top] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
  const at = (v) => 8 + (high * (top - v)) / (top - low);
  const bar = (name, i, k) => {
    const v = rows[name][i];
    const x = 10 + i * (names.length * wide + 22) + k * wide;
    const [a, b] = [at(0), at(v)].sort((p, q) => p - q);
    const kinds = [v < 0 ? "below" : "above", weights.includes(name) ? "weights" : "", /^d[a-z]/.test(name) ? "gradient" : ""].join(" ");
    return `<rect class="${kinds}" data-cell="${escaped(cellAt(name, [i]))}" x="${x}" y="${a.toFixed(2)}" width="${wide - 5}" height="${(b - a).toFixed(2)}"/>` +
      words([x + wide / 2 - 2, high + 26], name);
  };
  const width = n * (names.length * wide + 22) + 6;
  const inside = range(n, (i) => names.map((name, k) => bar(name, i, k)).join("")).join("");
  return svg(width, high + 34, `<line class="axis" x1="0" x2="${width}" y1="${at(0)}" y2="${at(0)}"/>${inside}`);
}
