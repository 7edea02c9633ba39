// Which pages answer a question, best first; and which page explains a pasted message. It reads the index that the build makes
// (conf/atlas/search_index.py) and knows nothing of the page that it runs on.
window.atlasSearch = (() => {
  const { pages, words: vocabulary, found, levels, dropped, weak, synonyms, messages, fixes, rows, symptoms } = window.atlasSearchIndex;
  const terms = [];
  for (const word of vocabulary.split(" ")) terms.push((terms.at(-1) ?? "").slice(0, parseInt(word[0], 36)) + word.slice(1));
  const numberOf = new Map(terms.map((term, number) => [term, number]));
  const saysNothing = new Set(dropped.split(" ")), saysLittle = new Set(weak.split(" "));

  // -- Words, as conf/atlas/search_index.py has them ------------------------------------------------

  const SUFFIXES = [
    ["isations", "iz"], ["isation", "iz"], ["izations", "iz"], ["ization", "iz"], ["ising", "iz"], ["ised", "iz"],
    ["ises", "iz"], ["ise", "iz"], ["ations", "at"], ["ation", "at"], ["ions", ""], ["ion", ""], ["ies", "y"],
    ["ied", "y"], ["sses", "ss"], ["ings", ""], ["ing", ""], ["ers", ""], ["er", ""], ["ors", ""], ["or", ""],
    ["ours", ""], ["our", ""], ["edly", ""], ["ed", ""], ["ly", ""], ["es", ""], ["e", ""],
  ];
  const stem = word => {
    if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
    for (const [suffix, instead] of SUFFIXES)
      if (word.endsWith(suffix) && word.length - suffix.length >= 3)
        return word.slice(0, word.length - suffix.length).replace(/([bdgmnprt])\1$/, "$1") + instead;
    return word.replace(/(?<![siau])s$/, "");
  };
  const CHINESE = /^[\u3400-\u9fff]/;
  // A token of a question with all that it may be found by: itself, or else its parts. `raw` is what was typed.
  const tokens = text => (text.match(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{L}\p{N}_])+/gu) ?? []).map(token => {
    if (CHINESE.test(token)) {
      const pairs = token.length > 2 ? [...token].slice(1).map((_, at) => token.slice(at, at + 2)) : [];
      return { raw: token, whole: token, parts: pairs };
    }
    const pieces = /_|[a-z][A-Z]/.test(token) ? token.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? [] : [];
    const parts = pieces.length > 1 || token.includes("_") ? pieces.map(piece => piece.toLowerCase()).filter(counts) : [];
    const raw = token.toLowerCase();
    return { raw, whole: counts(raw) ? stem(raw) : "", parts: parts.map(stem) };
  });
  const counts = word => word.length > 1 && !/^\d+$/.test(word) && !saysNothing.has(word);
  const known = new Map(); // titles and headings are looked at again at each key
  const words = text => {
    if (!known.has(text)) known.set(text, tokens(text).flatMap(({ whole, parts }) => whole ? [whole, ...parts] : parts));
    return known.get(text);
  };

  // -- What the index says of a word ------------------------------------------------------------------

  let at = 0;
  const lists = found.split(" ").map(steps => { // [page, how much it is about the word]
    let page = 0;
    return [...steps.matchAll(/([A-Z]?)([0-9a-z])/g)].map(([, thirtySixes, rest]) => {
      page += (thirtySixes ? 36 * (thirtySixes.charCodeAt(0) - 64) : 0) + parseInt(rest, 36);
      return [page, Number(levels[at++])];
    });
  });
  const pagesOf = number => lists[number];
  // The square root of the rarity that BM25 has: with the whole of it one rare word outweighs a question.
  const rarity = number => Math.sqrt(Math.log(1 + (pages.length - pagesOf(number).length + 0.5) / (pagesOf(number).length + 0.5)));

  const startingWith = beginning => {  // the words are sorted by code point, as Python sorts them
    let low = 0, high = terms.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (terms[middle] < beginning) low = middle + 1; else high = middle;
    }
    const numbers = [];
    while (low < terms.length && terms[low].startsWith(beginning)) numbers.push(low++);
    return numbers;
  };

  // One letter missing, too many or wrong, or two neighbors swapped.
  const isOneOff = (typed, term) => {
    if (Math.abs(typed.length - term.length) > 1) return false;
    let start = 0, end = 0;
    while (start < typed.length && typed[start] === term[start]) start++;
    const shorter = Math.min(typed.length, term.length);
    while (end < shorter - start && typed.at(-1 - end) === term.at(-1 - end)) end++;
    const left = typed.slice(start, typed.length - end), right = term.slice(start, term.length - end);
    return left.length <= 1 && right.length <= 1
      || left.length === 2 && right.length === 2 && left[0] === right[1] && left[1] === right[0];
  };

  // [term's number, how well it stands for the token], the token's own term first
  const alternatives = (token, isLast, mayBeMistyped) => {
    const own = numberOf.get(token.whole);
    const list = own === undefined ? [] : [[own, 1]];
    const like = word => terms.flatMap((term, number) => isOneOff(word, term) ? [[number, 0.7]] : []);
    if (own === undefined && token.whole.length > 3 && mayBeMistyped) list.push(...like(token.whole), ...like(token.raw));
    for (const part of own === undefined ? token.parts : []) if (numberOf.has(part)) list.push([numberOf.get(part), 0.8]);
    for (const other of synonyms[token.whole] ?? []) if (numberOf.has(other)) list.push([numberOf.get(other), 0.5]);
    if (isLast && (token.whole || token.raw.length === 1))
      for (const beginning of new Set([token.raw, token.whole || token.raw]))
        list.push(...startingWith(beginning).slice(0, 40).map(number => [number, own === undefined ? 0.8 : 0.3]));
    return list;
  };

  // -- Questions ----------------------------------------------------------------------------------------

  const LONG = 12; // words of a question: what is longer was pasted, and has no wrong letters
  const OF_KIND = { e: 0.9, l: 1, r: 0.75, i: 0.55 };

  const rank = query => {
    const asked = tokens(query), score = new Float64Array(pages.length), stands = new Map();
    const isOpen = /[\p{L}\p{N}_]$/u.test(query);
    asked.forEach((token, place) => {
      const list = alternatives(token, isOpen && place === asked.length - 1, asked.length <= LONG);
      if (!list.length) return;
      const weight = saysLittle.has(token.whole) ? 0.15 : 1;
      const best = new Map();
      for (const [number, likeness] of list) {
        const rare = rarity(number);
        stands.set(terms[number], Math.max(stands.get(terms[number]) ?? 0, weight * rare * likeness));
        for (const [page, level] of pagesOf(number))
          best.set(page, Math.max(best.get(page) ?? 0, rare * likeness * level));
      }
      for (const [page, value] of best) score[page] += weight * value;
    });
    for (const [page, likeness] of likeSymptoms(query)) if (likeness > 0.7) score[page] *= 1 + 2 * likeness;
    const results = [];
    score.forEach((value, page) => {
      if (value) results.push({ page, score: value * OF_KIND[pages[page][3]] });
    });
    const title = ({ page }) => pages[page][1].length; // of two that are as good, the one that is about less else
    results.sort((one, other) => other.score - one.score || title(one) - title(other));
    return { results, stands };
  };

  // A symptom is what somebody says who has the problem: who says nearly the same is there. Pages, and how like theirs it is.
  const likeSymptoms = query => {
    const asked = new Set(words(query).map(word => numberOf.get(word)).filter(number => number !== undefined));
    return symptoms.map(([page, ...own]) => {
      const common = own.filter(number => asked.has(number)).length;
      return [page, common / (asked.size + own.length - common)];
    });
  };

  const slug = heading => heading.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

  // The row of a long list that the question names: torch.linalg.qr is linalg.qr there.
  const rowOf = (page, query) => {
    for (const [name] of query.toLowerCase().matchAll(/[\w.]*\w/g)) {
      const heading = name.replace(/^(torch\.)?(nn\.functional\.|tensor\.)?/, "");
      const numbers = words(heading).map(word => numberOf.get(word));
      if (numbers.length && numbers.every(number => pagesOf(number ?? -1)?.some(([at, level]) => at === page && level > 2)))
        return { heading, anchor: rows[page] + heading.replaceAll(".", "-") };
    }
    return null;
  };

  // The part of a page whose title says what the page's own title does not.
  const sectionOf = (page, stands, query) => {
    if (page in rows) return rowOf(page, query);
    const [, title, , , sections] = pages[page], said = new Set(words(title));
    let best = null, most = 0;
    for (const [heading, anchor = slug(heading)] of sections) {
      const own = [...new Set(words(heading))].filter(word => !said.has(word));
      const value = own.reduce((sum, word) => sum + (stands.get(word) ?? 0), 0) / Math.sqrt(3 + own.length);
      if (value > most) [best, most] = [{ anchor, heading }, value];
    }
    return most > 1 ? best : null;
  };

  // -- Messages -----------------------------------------------------------------------------------------

  // What is the reader's own in a message: names in quotes, shapes, types, devices, numbers, nodes, files.
  const OWN = [
    /'[^']{0,80}'/g, /\[[^\]]*\]/g, /\([\d, ]*\)/g, /\btorch\.(\w+\.)*\w+/g, /\b\w+Backward\d*\b/g, /\b\w+Tensor\b/g,
    /\b(cuda|cpu|mps|xla|xpu|meta)(:\d+)?\b/gi, /\b(Float|Double|Half|BFloat16|Long|Int|Bool|Char|Byte|Short|ComplexFloat)\b/g,
    /\b(float|int|uint|bfloat|complex)\d+\b/g, /\b\d+(\.\d+)?([x×]\d+)*\b/g, /\S*[/\\]\S*/g,
  ];
  const fixed = text => OWN.reduce((left, own) => left.replace(own, " "), text).toLowerCase().match(/[a-z_]+/g) ?? [];
  const literal = text => text.toLowerCase().match(/[a-z0-9_]+/g) ?? [];
  const pairs = list => new Set(list.slice(1).map((word, at) => `${list[at]} ${word}`));
  let templates;

  // What a paste says went wrong: the text after the last name of an error, or all of it.
  const said = paste => {
    const at = [...paste.matchAll(/(?:^|\s|\.)\w*(?:Error|Warning|Exception):\s/g)].at(-1);
    return at ? paste.slice(at.index + at[0].length) : paste;
  };

  const explain = paste => {
    templates ??= messages.map(([page, text, isSibling]) => ({ page, isOwn: !isSibling, pairs: pairs(fixed(text)), whole: pairs(literal(text)) }));
    const asked = pairs(fixed(said(paste)).slice(0, 80)), askedWhole = pairs(literal(said(paste)).slice(0, 80));
    const named = new Set(likeSymptoms(said(paste)).filter(([, likeness]) => likeness > 0.9).map(([page]) => page));
    let best = null;
    for (const { page, isOwn, pairs: own, whole } of templates) {
      let common = 0;
      for (const pair of asked) common += own.has(pair);
      // few words are enough if they are all that a page's own message has, and no longer message fits
      if (common < (isOwn ? Math.min(3, Math.max(2, own.size)) : 3)) continue;
      // a paste may end early, or go on with advice: whichever of the two is covered better
      let covered = Math.max((own.size < 3 ? 0.8 : 1) * common / own.size, 0.95 * common / asked.size) + common / 100;
      // of two that differ in names and types only, the one with the reader's
      for (const pair of askedWhole) covered += whole.has(pair) / whole.size / 1000;
      // of two that raise it, the one that calls it its own
      covered += named.has(page) / 100;
      // many lessons raise a message that a page about errors explains
      const value = page in fixes ? covered : 0.7 * covered;
      if (covered > 0.6 && value > (best?.value ?? 0)) best = { page, isOwn, value };
    }
    return best && { ...best, fix: best.isOwn ? fixes[best.page] ?? "" : "" };
  };

  // A card for what looks like a message, and pages with their sections. `stands`: the words to mark, with their weight.
  // Beside a card, fewer pages are enough.
  const find = (query, most = 12) => {
    const card = explain(query);
    const { results, stands } = rank(card ? said(query).slice(0, 400) : query.slice(0, 400));
    const shown = results.filter(({ page }) => page !== card?.page).slice(0, card ? Math.min(most, 5) : most);
    return { card, stands, results: shown.map(result => ({ ...result, section: sectionOf(result.page, stands, query) })) };
  };

  return { find, words, pages };
})();
