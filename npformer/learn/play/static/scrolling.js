// A row that is wider than the page: fades and arrows say that it goes on, and where.

import { el } from "./dom.js";

// what: its name, for the arrows. Returns {node, update}: to be updated when the row has changed.
export function scrolling(row, what) {
  const by = (share) => row.scrollBy({ left: share * row.clientWidth, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  const arrow = (text, side, share) => el("button", {
    type: "button", class: `go-${side}`, "aria-label": `show more of ${what}, to the ${side}`, onclick: () => by(share),
  }, text);
  const [left, right] = [arrow("‹", "left", -0.8), arrow("›", "right", 0.8)];
  const hint = el("small", { class: "goes-on" });
  const frame = el("div", { class: "goes" }, row, left, right);
  const node = el("div", { class: "goes-frame" }, frame, hint);
  function update() {
    const rest = row.scrollWidth - row.clientWidth;
    const [before, after] = [row.scrollLeft > 4, row.scrollLeft < rest - 4];
    frame.classList.toggle("more-left", before);
    frame.classList.toggle("more-right", after);
    [left.hidden, right.hidden, hint.hidden] = [!before, !after, rest <= 4];
    const ways = [before ? "← to the left" : null, after ? "to the right →" : null].filter(Boolean);
    hint.textContent = `${what[0].toUpperCase()}${what.slice(1)} ${what.endsWith("s") ? "go" : "goes"} on ${ways.join(" and ")}; scroll, or press an arrow.`;
  }
  row.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(row);
  return { node, update };
}
