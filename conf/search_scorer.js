// How the results of a search are ranked. Sphinx gives every page whose title has a word of the query the same score; here
// counts how much of the title is in the query, or of the query in the title, so that a pasted error message finds its page.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([_page, title, _anchor, _description, score]) => {
    const words = text => new Set(text.toLowerCase().match(/\w+/g));
    const asked = words(new URLSearchParams(location.search).get("q") ?? ""), said = words(title);
    const common = [...said].filter(word => asked.has(word)).length;
    return score + Math.round(100 * common / (1 + Math.min(asked.size, said.size)));
  },
};
