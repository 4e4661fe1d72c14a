// The words of a text, and their ids, as npformer.data.tokenizers.WordTokenizer has them.

const SINGLE = "\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff"; // written without spaces
const LETTER = `(?:(?![${SINGLE}])[\\p{L}\\p{N}_])`;
const TOKEN = new RegExp(`[${SINGLE}]|${LETTER}+(?:['\\u2019]${LETTER}+)*|[^\\p{L}\\p{N}_\\s]`, "gu");
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
