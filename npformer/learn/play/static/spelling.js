// The words of a text, and their ids, as npformer.data.tokenizers.WordTokenizer has them.

const SINGLE = "\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff"; // written without spaces
const MARK = "[\\p{M}\\u{1f3fb}-\\u{1f3ff}\\u05f3]|(?!\\u200b)\\p{Cf}"; // belongs to what it stands behind
const MARKS = `(?:${MARK})*`;
const LETTER = `(?!${MARK}|[${SINGLE}])[\\p{L}\\p{N}_]${MARKS}`;
const SYMBOL = `(?:[^\\p{L}\\p{N}_\\s\\u200b]|\\ufeff)${MARKS}`;
const WITHIN = "(?:['\\u2019\\u00b7\\u05f4\\u2027]|\"(?=[\\u05d0-\\u05ea]))"; // no end of a word between letters
const TOKEN = new RegExp(
  `(?!${MARK})[${SINGLE}]${MARKS}|(?:${LETTER})+(?:${WITHIN}(?:${LETTER})+)*`
  + `|[\\u{1f1e6}-\\u{1f1ff}]{2}|${SYMBOL}(?:(?<=\\u200d)${SYMBOL})*`, "gu");
const UNKNOWN = 1;

function parts(word, n) {
  const letters = [...`<${word}>`];
  if (letters.length <= n) return [];
  return letters.slice(n - 1).map((_, i) => `#${letters.slice(i, i + n).join("")}`);
}

// tokenizer: { words, lower, ngrams } with the whole vocabulary. Without `words`, a text is token names and spaces.
export function spelling(tokenizer, names, maxLen) {
  const place = new Map(names.map((name, id) => [name, id]));
  if (!tokenizer) {
    return (text) => text.trim().split(/\s+/).slice(0, maxLen).map((name) => {
      if (place.has(name)) return place.get(name);
      throw new Error(`“${name}” is not a token of this model; expected some of ${names.slice(0, 24).join(" ")}${names.length > 24 ? " …" : ""}`);
    });
  }
  return (text) => {
    const plain = text.normalize("NFC");
    const words = ((tokenizer.lower ? plain.toLowerCase() : plain).match(TOKEN) ?? []).slice(0, maxLen);
    const ids = words.map((word) => place.get(word) ?? UNKNOWN);
    const more = tokenizer.ngrams ? words.flatMap((word) => parts(word, tokenizer.ngrams)) : [];
    const found = [...ids, ...more.map((part) => place.get(part)).filter((id) => id !== undefined)].slice(0, maxLen);
    return found.length ? found : [UNKNOWN];
  };
}
