// A small language model in a page: from the stored file to tokens, and from tokens to the next one.
//
// The arithmetic is that of model.js, which stands above this file; the file is written by docs/site/small_model.py.

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// A vector in float32, or a matrix whose row i is scale_i times whole numbers of 8 bits.
function storedTensor({ shape, data, scales }) {
  if (!scales) return Float64Array.from(new Float32Array(bytesOf(data).buffer));
  const [rows, width] = shape;
  const scaleOf = new Float32Array(bytesOf(scales).buffer);
  const whole = new Int8Array(bytesOf(data).buffer);
  return range(rows, (i) => Float64Array.from(whole.subarray(i * width, (i + 1) * width), (q) => q * scaleOf[i]));
}

function loadWriter(file) {
  const weights = Object.fromEntries(Object.entries(file.tensors).map(([name, stored]) => [name, storedTensor(stored)]));
  const tokens = [...SPECIAL, ...file.tokenizer.characters, ...file.tokenizer.words];
  return { config: file.config, arguments: file.arguments, weights, tokens, idOf: new Map(tokens.map((token, id) => [token, id])) };
}

// Tokens, as npformer.data.tokenizers.SpellingTokenizer cuts them: a frequent word with the space before it is one
// token, and anything else is spelled.

const SPECIAL = ["[PAD]", "[BEGIN]", "[END]", "[UNK]"]; // ids 0 to 3, which are never written
const UNKNOWN = 3;
const MARK = "[\\p{M}\\u{1f3fb}-\\u{1f3ff}\\u05f3]|(?!\\u200b)\\p{Cf}"; // belongs to the letter before it
const LETTER = `(?!${MARK})[\\p{L}\\p{N}]`;
const LETTERS = `${LETTER}(?:${LETTER}|${MARK})*`;
const WITHIN = "(?:['\\u2019\\u00b7\\u05f4\\u2027]|\"(?=[\\u05d0-\\u05ea]))"; // no end of a word between letters
const WORD = new RegExp(` ?${LETTERS}(?:${WITHIN}${LETTERS})*`, "gu");

function cut(text, { idOf }) {
  const tokens = [];
  let end = 0; // of the word before
  for (const { 0: word, index } of text.matchAll(WORD)) {
    tokens.push(...text.slice(end, index), ...(idOf.has(word) ? [word] : word));
    end = index + word.length;
  }
  tokens.push(...text.slice(end));
  return tokens;
}
const idsOf = (tokens, { idOf }) => tokens.map((token) => idOf.get(token) ?? UNKNOWN);

// The logits of the token after the last one, and the attention weights of each layer and head.
function readTokens(writer, ids) {
  const { y, mixing } = encode(writer, ids);
  const last = y.at(-1);
  const logits = Float64Array.from(writer.weights["embed.tokens.weight"], (row) => dot(row, last)); // a tied output
  return { logits, attention: mixing.map(({ heads }) => heads) };
}

// The distribution to draw from: logits divided by the temperature, without special tokens. At 0, the likeliest one.
function nextProbabilities(logits, temperature) {
  const allowed = logits.map((value, id) => (id < SPECIAL.length ? -Infinity : value));
  const top = Math.max(...allowed);
  if (temperature === 0) {
    const likeliest = allowed.indexOf(top);
    return allowed.map((_, id) => Number(id === likeliest));
  }
  return softmax(allowed.map((value) => (value - top) / temperature));
}

function likeliest(probabilities, n) {
  const ids = range(probabilities.length, (id) => id).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
  return ids.slice(0, n);
}

// The token that a number in [0, 1) draws.
function drawToken(probabilities, number) {
  let below = 0;
  const last = probabilities.findLastIndex((p) => p > 0);
  for (let id = 0; id < last; id++) {
    below += probabilities[id];
    if (number < below) return id;
  }
  return last;
}
