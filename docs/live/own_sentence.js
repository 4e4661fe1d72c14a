// The reader's own sentence in a small language model: its tokens, what each looks at, and what may come next.
//
// The model's file is loaded when the reader begins, and not before.

const MODEL_PLACE = new URL("small_model.js", document.currentScript?.src ?? location.href).href;
const SAMPLE = "My lord, the king is dead, and the queen will";
const MOST_CHARACTERS = 2000;
const SHOWN_NEXT = 5;
const LONG = 30; // tokens from which the matrix needs the width of the page

const escaped = (words) => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const visible = (token) => token.replaceAll(" ", "\u00b7").replaceAll("\n", "\u21b5");
const spoken = (token) => ({ " ": "space", "\n": "line break" })[token] ?? token.trim();
const quoted = (token) => `\u201c${spoken(token)}\u201d`;
const percent = (p) => `${(100 * p).toFixed(p >= 0.0995 ? 0 : 1)} %`;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function frame(place) {
  const model = `<button type="button" class="begin">Read it</button> <span class="size">This loads the model once: ${place.dataset.size}. Nothing that you write leaves the page.</span>`;
  place.innerHTML = `<form>
      <label for="own-text">Your sentence</label>
      <textarea id="own-text" rows="3" spellcheck="false" aria-describedby="own-said">${SAMPLE}</textarea>
      <p class="line begins">${model}</p>
    </form>
    <p class="said" id="own-said" role="status"></p>
    <div class="answer" hidden>
      <section class="read"><h3>Tokens</h3>
        <p class="hint">\u00b7 is a space. Choose a token: the stronger the colour of another, the more it looks at that one. It never sees later ones.</p>
        <div class="tokens" role="group" aria-label="Tokens: arrow keys move, and say what a token looks at"></div>
        <p class="looks" role="status"></p>
      </section>
      <section class="next"><h3>What comes next</h3>
        <label class="heat"><span>Temperature</span><input type="range" min="0" max="2" step="0.05" value="1"><output>1.00</output></label>
        <ol class="likeliest" aria-label="The five likeliest next tokens"></ol>
        <p class="line"><button type="button" data-add="best">Add the likeliest</button><button type="button" data-add="draw">Draw one</button>
          <button type="button" data-add="many">Draw 12</button><button type="button" data-add="undo" disabled>Undo</button></p>
      </section>
      <section class="heads"><h3>Heads</h3><div class="choices" role="radiogroup" aria-label="Layer and head"></div></section>
      <section class="matrix"><h3>Attention</h3><div class="squares" tabindex="0" role="group"></div></section>
    </div>`;
}

function ownSentence(place) {
  frame(place);
  const $ = (selector) => place.querySelector(selector);
  const [text, said, looks] = [$("textarea"), $(".said"), $(".looks")];
  const before = []; // texts that tokens were added to
  let [writer, reading, chosen, layer, head] = [null, null, 0, 0, 1]; // this head mostly looks one token back
  const temperature = () => $(".heat input").valueAsNumber;

  async function begin() {
    if (writer) return;
    said.textContent = "The model is loading.";
    $(".begin").disabled = true;
    try {
      writer = loadWriter(await loadFile());
      $(".begins").hidden = true;
      showHeads();
      think();
    } catch {
      said.textContent = "The model\u2019s file, small_model.js, could not be loaded. Is it beside this page\u2019s scripts? Try again.";
    }
    $(".begin").disabled = false;
  }

  // Cuts the text and computes everything, or says why not.
  function think() {
    const written = text.value;
    reading = null;
    if (!written) said.textContent = `The box is empty. Write something, such as ${quoted("My lord")}.`;
    else if (written.length > MOST_CHARACTERS)
      said.textContent = `The text has ${written.length} characters, and at most ${MOST_CHARACTERS} are read here. Shorten it.`;
    else reading = readText(written);
    $(".answer").hidden = !reading;
    if (!reading) return;
    $(".answer").classList.toggle("long", reading.read.length > LONG);
    said.textContent = remarks(reading).join(" ");
    chosen = reading.read.length - 1;
    showTokens();
    showNext();
    paintHeads();
    choose(chosen);
  }

  function readText(written) {
    const tokens = cut(written, writer);
    const skipped = Math.max(0, tokens.length - writer.config.max_len);
    const read = tokens.slice(skipped);
    return { tokens, skipped, read, ...readTokens(writer, idsOf(read, writer)) };
  }

  function remarks({ tokens, skipped, read }) {
    const unknown = [...new Set(tokens.filter((token) => !writer.idOf.has(token)))];
    const most = writer.config.max_len;
    return [
      `${plural(tokens.length, "token")}.`,
      ...(skipped ? [`The model reads ${most} at most: the last ${most}, and not the ${skipped} in grey.`] : []),
      ...(unknown.length ? [`The plays that it learned from have no ${unknown.map(quoted).join(", ")}: the model reads an unknown character there.`] : []),
      ...(read.length === 1 ? ["A single token can only look at itself: write more."] : []),
    ];
  }

  // Tokens, and what the chosen one looks at.
  function showTokens() {
    const { tokens, skipped } = reading;
    $(".tokens").innerHTML = tokens.map((token, k) => {
      const kind = [k < skipped ? "skipped" : "", writer.idOf.has(token) ? "" : "unknown"].join(" ").trim();
      const name = `${spoken(token)}${writer.idOf.has(token) ? "" : ", unknown"}`;
      const attributes = k < skipped ? "disabled" : `data-place="${k - skipped}" tabindex="-1"`;
      const end = token.includes("\n") ? "<br>" : "";
      return `<button type="button" class="${kind}" aria-label="${escaped(name)}" ${attributes}>${escaped(visible(token))}</button>${end}`;
    }).join("");
  }
  const weights = () => reading.attention[layer][head];

  function choose(k, j = null) {
    chosen = k;
    const row = weights()[k];
    for (const token of $(".tokens").querySelectorAll("[data-place]")) {
      const t = Number(token.dataset.place);
      token.style.setProperty("--looks", `${(50 * row[t]).toFixed(0)}%`); // words stay readable
      token.classList.toggle("later", t > k);
      token.tabIndex = t === k ? 0 : -1;
      token.setAttribute("aria-pressed", String(t === k));
    }
    looks.textContent = `In head ${head + 1} of layer ${layer + 1}, ${describeRow(k, row, j)}`;
    showMatrix(j);
  }

  function describeRow(k, row, j) {
    const name = quoted(reading.read[k]);
    if (j !== null && j > k) return `${name} does not see ${quoted(reading.read[j])}, which comes later.`;
    if (j !== null) return `${name} gives ${percent(row[j])} of its weight to ${j === k ? "itself" : quoted(reading.read[j])}.`;
    const order = range(k + 1, (t) => t).sort((a, b) => row[b] - row[a]).slice(0, 3);
    return `${name} looks at ${order.map((t) => `${t === k ? "itself" : quoted(reading.read[t])} (${percent(row[t])})`).join(", ")}.`;
  }

  // All heads, small, and one of them, large.
  function showHeads() {
    const { n_layers: layers, n_heads: heads } = writer.config;
    $(".choices").innerHTML = range(layers, (l) => range(heads, (h) =>
      `<label><input type="radio" name="own-head" value="${l},${h}" ${l === layer && h === head ? "checked" : ""} aria-label="layer ${l + 1}, head ${h + 1}">` +
      `<canvas aria-hidden="true"></canvas><span>${l + 1}.${h + 1}</span></label>`).join("")).join("");
    $(".choices").style.setProperty("--heads", heads);
  }
  function paintHeads() {
    [...$(".choices").querySelectorAll("canvas")].forEach((canvas, k) => {
      const { n_heads: heads } = writer.config;
      const rows = reading.attention[Math.floor(k / heads)][k % heads];
      [canvas.width, canvas.height] = [rows.length, rows.length];
      const image = new ImageData(rows.length, rows.length);
      rows.forEach((row, i) => row.forEach((weight, j) => image.data.set([26, 170, 125, Math.round(255 * weight)], 4 * (i * rows.length + j))));
      canvas.getContext("2d").putImageData(image, 0, 0);
    });
  }
  function showMatrix(column) {
    const { read } = reading;
    const box = $(".squares");
    const longest = Math.min(10, Math.max(...read.map((token) => visible(token).length)));
    const [left, top] = [14 + 6 * longest, 12 + 7 * longest];
    const size = Math.max(9, Math.min(24, Math.floor((box.clientWidth - left - 4) / read.length)));
    const at = (k) => k * size + size / 2 + 3.5;
    const name = (k) => escaped(visible(read[k]).slice(0, 10));
    const mark = (k, other) => (k === other ? ' class="marked"' : "");
    const labels = read.map((_, k) =>
      `<text x="${left - 5}" y="${top + at(k)}" text-anchor="end"${mark(k, chosen)}>${name(k)}</text>` +
      `<text transform="translate(${left + at(k)} ${top - 5}) rotate(-90)"${mark(k, column)}>${name(k)}</text>`);
    const squares = weights().flatMap((row, i) => range(i + 1, (j) =>
      `<rect x="${left + j * size}" y="${top + i * size}" width="${size}" height="${size}" data-row="${i}" data-column="${j}" fill-opacity="${row[j].toFixed(3)}"/>`));
    const outline = (x, y, width) => `<rect class="outline" x="${x}" y="${y}" width="${width}" height="${size}"/>`;
    const marked = outline(left, top + chosen * size, (chosen + 1) * size) + (column === null ? "" : outline(left + column * size, top + chosen * size, size));
    const [width, height] = [left + read.length * size + 4, top + read.length * size + 4];
    $(".matrix h3").textContent = `Attention of head ${layer + 1}.${head + 1}`;
    box.setAttribute("aria-label", `Attention of head ${head + 1} in layer ${layer + 1}: a row for each token, and in it its weights for the tokens up to it. Arrow keys go from square to square.`);
    box.dataset.column = column ?? chosen;
    box.innerHTML = `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" style="font-size: ${Math.min(12, size)}px" aria-hidden="true">${squares.join("")}${labels.join("")}${marked}</svg>`;
  }

  // The next token.
  function showNext() {
    const p = nextProbabilities(reading.logits, temperature());
    $(".heat output").textContent = temperature().toFixed(2);
    $(".likeliest").innerHTML = likeliest(p, SHOWN_NEXT).map((id) =>
      `<li data-id="${id}" data-p="${p[id]}" style="--share: ${(100 * p[id]).toFixed(1)}%"><button type="button" aria-label="add ${escaped(spoken(writer.tokens[id]))}, ${percent(p[id])}">${escaped(visible(writer.tokens[id]))}</button><span>${percent(p[id])}</span></li>`).join("");
  }
  function add(id) {
    before.push(text.value);
    text.value += writer.tokens[id];
    think();
  }
  async function addDrawn(n) {
    for (let k = 0; k < n && reading; k++) {
      add(drawToken(nextProbabilities(reading.logits, temperature()), Math.random()));
      await new Promise((resolve) => setTimeout(resolve)); // the page shows each token
    }
  }
  const ADDERS = {
    best: () => add(likeliest(nextProbabilities(reading.logits, 0), 1)[0]),
    draw: () => addDrawn(1),
    many: () => addDrawn(12),
    undo: () => {
      text.value = before.pop();
      think();
    },
  };

  let waiting = null;
  text.addEventListener("input", () => {
    if (!writer) return;
    clearTimeout(waiting);
    waiting = setTimeout(think, 150);
  });
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $(".begin").addEventListener("click", begin);
  $(".heat input").addEventListener("input", showNext);
  $(".likeliest").addEventListener("click", ({ target }) => {
    const item = target.closest("li");
    if (!item) return;
    add(Number(item.dataset.id));
    $(".likeliest button").focus();
  });
  place.addEventListener("click", async ({ target }) => {
    const next = $(".next");
    if (target.dataset?.add && reading && next.ariaBusy !== "true") {
      next.ariaBusy = "true"; // until all tokens are drawn
      await ADDERS[target.dataset.add]();
      next.ariaBusy = "false";
    }
    $("[data-add=undo]").disabled = !before.length;
  });
  $(".choices").addEventListener("change", ({ target }) => {
    [layer, head] = target.value.split(",").map(Number);
    choose(chosen);
  });
  for (const happening of ["click", "pointerover", "focusin"]) {
    $(".tokens").addEventListener(happening, ({ target }) => {
      if (target.dataset.place !== undefined && Number(target.dataset.place) !== chosen) choose(Number(target.dataset.place));
    });
  }
  $(".tokens").addEventListener("keydown", (event) => {
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: reading.read.length - 1 }[event.key];
    const token = $(`.tokens [data-place="${to}"]`);
    if (!token) return;
    event.preventDefault();
    token.focus();
  });
  for (const happening of ["click", "pointerover"]) {
    $(".squares").addEventListener(happening, ({ target: { dataset } }) => {
      if (dataset.column === undefined || dataset.row === undefined) return;
      const [row, column] = [Number(dataset.row), Number(dataset.column)];
      if (row === chosen && column === Number($(".squares").dataset.column)) return; // a square that was drawn anew
      choose(row, column);
    });
  }
  $(".squares").addEventListener("keydown", (event) => {
    const [i, j] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (!i && !j) return;
    event.preventDefault();
    const row = Math.max(0, Math.min(reading.read.length - 1, chosen + i));
    choose(row, Math.max(0, Math.min(row, Number($(".squares").dataset.column) + j)));
  });
}

function loadFile() {
  if (globalThis.npformerSmallModel) return Promise.resolve(globalThis.npformerSmallModel);
  return new Promise((resolve, reject) => {
    const script = document.createElement("script"); // a page that was opened from a file cannot fetch
    script.src = MODEL_PLACE;
    script.onload = () => resolve(globalThis.npformerSmallModel);
    script.onerror = () => (script.remove(), reject(new Error(MODEL_PLACE)));
    document.head.append(script);
  });
}

addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.own-sentence").forEach(ownSentence));
