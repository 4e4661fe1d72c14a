// Which search results come first. What was typed and is the name of something wins: a symbol if it
// looks like one (nf.fit, EncoderConfig, softmax_backward), else the page that is called so or on
// which the word is explained. Then chapters, other pages, examples, and last the reference, which is written from
// docstrings. Within each group, Sphinx's points decide.
const PLACES = [["chapters/", 300], ["gallery/", 150], ["_modules/", -100], ["reference/", 0]];
const OTHER = 200;
const EXACT = 5000;
const ABOUT = 50;
const typed = (new URLSearchParams(window.location.search).get("q") ?? "").trim();
const lower = typed.toLowerCase();
const isSymbol = /[._]|[a-z][A-Z]/.test(typed);
// Pages that as a whole explain what was typed: their excerpts are their beginnings.
const EXPLAINING = new Set();
// The name by which users call something: nf.fit for npformer.training.fit.fit, and so for methods.
const called = (name) => {
  const words = name.split(".");
  for (let n = words.length; n > 0; n--) {
    const start = words.slice(0, n).join(".");
    if (start in NAMES) return [NAMES[start], ...words.slice(n)].join(".");
  }
  return name;
};
// The heading of a section of a page, as results of its own are called; nothing for the page itself.
const heading = (page, id) => {
  const file = Search._index.docnames.indexOf(page);
  return Object.entries(Search._index.alltitles).find(([, places]) => places.some(([k, name]) => k === file && name === id))?.[0];
};
var Scorer = {
  score: (result) => {
    const [page, title, anchor, , points, , kind] = result;
    const place = (PLACES.find(([start]) => page.startsWith(start)) ?? ["", OTHER])[1];
    const words = page.split("/").at(-1).split("_");
    const isPage = kind === "text" && !page.startsWith("reference/");
    const named =
      (kind === "index" && points === 100) ||
      (kind === "object" && title.split(".").at(-1).toLowerCase() === lower.split(".").at(-1)) ||
      (kind === "title" && title.toLowerCase() === lower) ||
      (isPage && words.join(" ") === lower.replaceAll("-", " "));
    const about = isPage && words.every((word) => lower.split(/[\s-]+/).includes(word));
    const inOrder = isSymbol && page.startsWith("reference/") ? 2 * OTHER : place;
    const method = kind === "object" && /\.[A-Z]\w*\.\w+$/.test(title); // behind functions
    // A heading that was typed as it stands leads to its section, behind what is named so.
    const section = kind === "title" && title.split(" > ").at(-1).toLowerCase() === lower;
    // An entry of the reference is one result, called as users call it, with an excerpt.
    if (kind === "object") [result[1], result[3]] = [called(title), null];
    // What else leads to a section is called by its heading, and so is one result with it.
    if (kind === "index") {
      const name = anchor.slice(1);
      if (name.startsWith("npformer.")) result[1] = called(name);
      else {
        const words = heading(page, name);
        [result[1], result[2]] = words ? [`${title} > ${words}`, anchor] : [title, ""];
        if (!words) EXPLAINING.add(page);
      }
    }
    return points + inOrder + (named ? EXACT : section ? EXACT / 2 : 0) + (about ? ABOUT : 0) - (method ? 1 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 0, 1: 5, 2: -5 }, // modules behind what they define
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
