// Which search results come first: chapters, then other pages, then examples, and last the
// reference, which is written from docstrings. Within each group, Sphinx's points decide.
const PLACES = [["chapters/", 300], ["gallery/", 150], ["reference/", 0]];
const OTHER = 200;
var Scorer = {
  score: ([page, , , , points]) =>
    points + (PLACES.find(([place]) => page.startsWith(place)) ?? ["", OTHER])[1],
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
