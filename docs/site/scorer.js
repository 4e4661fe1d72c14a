// Which search results come first. What was typed and is the name of something wins: a symbol if it
// looks like one (nf.fit, EncoderConfig, softmax_backward), else the page on which the word is
// explained. Then chapters, other pages, examples, and last the reference, which is written from
// docstrings. Within each group, Sphinx's points decide.
const PLACES = [["chapters/", 300], ["gallery/", 150], ["_modules/", -100], ["reference/", 0]];
const OTHER = 200;
const EXACT = 5000;
const typed = (new URLSearchParams(window.location.search).get("q") ?? "").trim();
const isSymbol = /[._]|[a-z][A-Z]/.test(typed);
var Scorer = {
  score: ([page, title, , , points, , kind]) => {
    const place = (PLACES.find(([start]) => page.startsWith(start)) ?? ["", OTHER])[1];
    const last = title.split(".").at(-1).toLowerCase();
    const named =
      (kind === "index" && points === 100) ||
      (kind === "object" && last === typed.split(".").at(-1).toLowerCase()) ||
      (kind === "title" && title.toLowerCase() === typed.toLowerCase());
    const inOrder = isSymbol && page.startsWith("reference/") ? 2 * OTHER : place;
    return points + inOrder + (named ? EXACT : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
