// Elements, built without HTML text: what a server or a person says goes in as text.

export function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value; // as a strict content security policy allows
    else if (typeof value === "boolean" || key === "value") node[key] = value;
    else node.setAttribute(key, value);
  }
  return fill(node, ...children);
}

// Replaces all children by these; null for none.
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

// A button whose action may fail: while it works it takes no click, and errors are shown, no older ones.
export function button(text, action, properties = {}) {
  const node = el("button", { type: "button", ...properties }, ...[text].flat());
  node.addEventListener("click", async () => {
    if (node.ariaBusy === "true") return;
    node.ariaBusy = "true";
    document.querySelector("#message").hidden = true;
    try {
      await action();
    } catch (error) {
      tell(error);
    } finally {
      node.ariaBusy = null;
    }
  });
  return node;
}

// A message at the foot of the page, for a few seconds.
let fading;
export function tell(error) {
  const box = document.querySelector("#message");
  box.firstElementChild.textContent = error.message ?? String(error);
  box.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => (box.hidden = true), 12_000);
}

export function choice(options, value, properties = {}) {
  const items = options.map((each) => (Array.isArray(each) ? each : [each, each]));
  const node = el("select", properties, items.map(([id, text]) => el("option", { value: id }, text)));
  if (value !== undefined) node.value = value;
  return node;
}

export function field(label, control, hint) {
  return el("label", { class: "field" }, el("span", {}, label), control, hint ? el("small", {}, hint) : null);
}

// Four digits, as Python's "%.4g" has them.
export function number(x, digits = 4) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return String(x);
  if (x === 0) return "0";
  const text = Number(x).toPrecision(digits);
  const size = Math.abs(x);
  if (size >= 1e-4 && size < 1e6) return String(Number(text)).replace("-", "−");
  return Number(text).toExponential().replace("e+", "e").replaceAll("-", "−");
}

export const percent = (p) => p > 0 && p < 5e-5 ? "< 0.01 %" : `${(100 * p).toFixed(p > 0.995 || p < 0.005 ? 2 : 1)} %`;

// A token with white space made visible.
export const visible = (token) => token.replaceAll("\n", "⏎").replace(/^ | $/g, "␣") || "␣";

// One line of a table of probabilities, with its bar.
export function bars(items, properties = {}) {
  return el("ol", { class: "bars", ...properties }, items.map(({ name, p, off, best }) =>
    el("li", { class: `${off ? "off" : ""} ${best ? "best" : ""}` },
      el("span", { class: "name" }, name),
      el("span", { class: "track" }, el("span", { class: "bar", style: `width:${100 * p}%` })),
      el("span", { class: "value" }, percent(p)))));
}

// Only the latest of many calls counts: while one is on its way, those between are left out.
export function latest(action) {
  let busy = false;
  let waiting = null;
  return async function call(...args) {
    if (busy) {
      waiting = args;
      return;
    }
    busy = true;
    try {
      await action(...args);
    } catch (error) {
      tell(error);
    } finally {
      busy = false;
      const next = waiting;
      waiting = null;
      if (next) call(...next);
    }
  };
}

export function debounce(action, wait = 250) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), wait);
  };
}
