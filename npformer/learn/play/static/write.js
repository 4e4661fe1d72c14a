// A language model writes, token by token.

import { bars, button, el, field, fill, number, tell, visible } from "./dom.js";

export function writeView(ask) {
  const text = el("textarea", { rows: 6, id: "text", spellcheck: "false" });
  text.value = "ROMEO:\n";
  const slider = (id, low, high, step, value) => el("input", { type: "range", id, min: low, max: high, step, value });
  const temperature = slider("temperature", 0, 2, 0.05, 0.8);
  const topP = slider("top-p", 0.05, 1, 0.05, 0.95);
  const seed = el("input", { type: "number", id: "write-seed", min: 0, step: 1, value: 0 });
  const candidates = el("div");
  const times = el("p", { class: "about", id: "times" });
  let writing = false;
  let drawn = 0;

  const named = (name, input) => {
    const value = el("b", {});
    const tell = () => (value.textContent = input.value);
    input.addEventListener("input", tell);
    tell();
    return [name, " ", value];
  };

  async function one() {
    const found = await ask("write", {
      prompt: text.value, temperature: Number(temperature.value), top_p: Number(topP.value), seed: Number(seed.value) + drawn++,
    });
    fill(candidates, bars(found.candidates.map(({ token, p, kept }) => ({ name: visible(token), p, off: !kept, best: token === found.token }))));
    text.value += found.token;
    text.scrollTop = text.scrollHeight;
    const ms = (seconds) => `${number(1000 * seconds, 3)} ms`;
    fill(times, "This token took ", el("b", {}, ms(found.seconds_cached)), " with the KV cache, which keeps what the tokens before it left behind, and ",
      el("b", {}, ms(found.seconds_plain)), " when the whole text is computed again. The longer the text, the more the KV cache saves.");
  }
  const go = el("button", { type: "button", id: "go", class: "main" }, "Write");
  go.addEventListener("click", async () => {
    writing = !writing;
    go.textContent = writing ? "Stop writing" : "Write";
    try {
      for (let k = 0; writing && node.isConnected && k < 300; k++) await one();
    } catch (error) {
      tell(error);
    }
    writing = false;
    go.textContent = "Write";
  });
  const node = el("div", { class: "two" },
    el("section", { class: "card" },
      el("h2", {}, "Let it write"),
      el("p", { class: "about" }, "Give it a beginning. The model gives each possible next token a probability; one is drawn, put at the end, and it all begins again."),
      field("The text", text),
      el("p", { class: "line" }, button("One token", one, { id: "one" }), go),
      field(named("Temperature", temperature), temperature, "Below 1 the likely tokens win more often, at 0 always; above 1 rare ones come more often."),
      field(named("Top-p", topP), topP, "Only the likeliest tokens that together have this probability may be drawn."),
      field("Seed of the draw", seed)),
    el("section", { class: "card" },
      el("h2", {}, "Candidates for the last token"),
      el("p", { class: "about" }, "The 20 likeliest. Grey ones are cut by top-p and can't be drawn. The one that was drawn is marked."),
      candidates, times));
  return { node };
}
