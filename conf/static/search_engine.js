// Which pages answer a question, best first; and which page explains a pasted message. It reads the index that the build makes
// (conf/atlas/search_index.py) and knows nothing of the page that it runs on.
window.atlasSearch = (() => {
  const { pages, words: vocabulary, found, levels, patterns, stems, dropped, weak, synonyms, messages, fixes, rows, symptoms } = window.atlasSearchIndex;
  const terms = [];
  for (const word of vocabulary.split(" ")) terms.push((terms.at(-1) ?? "").slice(0, parseInt(word[0], 36)) + word.slice(1));
  const numberOf = new Map(terms.map((term, number) => [term, number]));
  const saysNothing = new Set(dropped.split(" ")), saysLittle = new Set(weak.split(" "));

  // -- Words, by the tables of the index: tests/browser/test_search.py holds this to conf/atlas/search_index.py ------
  const [TOKEN, PIECE] = [patterns.token, patterns.piece].map(pattern => new RegExp(pattern, "g"));
  const [CHINESE, JOINED, NUMBER, STEMMED] = [patterns.chinese, patterns.joined, patterns.number, patterns.stemmed].map(pattern => new RegExp(pattern));
  const endings = stems.map(([ending, instead]) => [new RegExp(ending), instead]), others = new Map(Object.entries(synonyms));
  const stem = word => {
    const fits = STEMMED.test(word) && endings.find(([ending]) => ending.test(word));
    return fits ? word.replace(...fits) : word;
  };
  const counts = word => word.length > 1 && !NUMBER.test(word) && !saysNothing.has(word);
  const cut = (text, length) => Array.from({ length: Math.max(0, text.length + 1 - length) }, (_, at) => text.slice(at, at + length));
  // A token of a question with all that it may be found by: itself, or else its parts. `raw` is what was typed. A sentence in
  // Chinese has no spaces: each pair of its signs is a token, and so is a longer word in it that has synonyms.
  const tokens = text => (text.match(TOKEN) ?? []).flatMap(token => {
    if (CHINESE.test(token)) return [
      ...cut(token, Math.min(2, token.length)).map(pair => ({ raw: pair, whole: pair, parts: [] })),
      ...[3, 4, 5].flatMap(length => cut(token, length)).filter(word => others.has(word)).map(word => ({ raw: word, whole: "", parts: [] })),
    ];
    const pieces = JOINED.test(token) ? token.match(PIECE) ?? [] : [];
    const parts = pieces.length > 1 || token.includes("_") ? pieces.map(piece => piece.toLowerCase()).filter(counts) : [];
    const raw = token.toLowerCase();
    return [{ raw, whole: counts(raw) ? stem(raw) : "", parts: parts.map(stem) }];
  });
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
  // The square root of the rarity that BM25 has: with the whole of it one rare word outweighs a question.
  const rarity = number => Math.sqrt(Math.log(1 + (pages.length - lists[number].length + 0.5) / (lists[number].length + 0.5)));
  // One letter missing, too many or wrong, or two neighbors swapped.
  const isOneOff = (typed, term) => {
    let start = 0;
    while (start < typed.length && typed[start] === term[start]) start++;
    const left = typed.slice(start), right = term.slice(start);
    return left.slice(1) === right || left === right.slice(1) || left.slice(1) === right.slice(1)
      || left.slice(2) === right.slice(2) && left[0] === right[1] && left[1] === right[0];
  };
  // [term's number, how well it stands for the token], the token's own term first
  const alternatives = (token, isLast, mayBeMistyped) => {
    const own = numberOf.get(token.whole);
    const list = own === undefined ? [] : [[own, 1]];
    const like = word => terms.flatMap((term, number) => isOneOff(word, term) ? [[number, 0.7]] : []);
    if (own === undefined && token.whole.length > 3 && mayBeMistyped) list.push(...like(token.whole), ...like(token.raw));
    for (const part of own === undefined ? token.parts : []) if (numberOf.has(part)) list.push([numberOf.get(part), 0.8]);
    const likeness = CHINESE.test(token.raw) ? 1 : 0.5; // the site is in English
    for (const other of others.get(token.whole || token.raw) ?? []) if (numberOf.has(other)) list.push([numberOf.get(other), likeness]);
    if (isLast && (token.whole || token.raw.length === 1))
      for (const beginning of new Set([token.raw, token.whole || token.raw]))
        list.push(...terms.flatMap((term, at) => term.startsWith(beginning) ? [[at, own === undefined ? 0.8 : 0.3]] : []).slice(0, 40));
    return list;
  };

  // -- Questions ----------------------------------------------------------------------------------------
  const LONG = 12; // words of a question: what is longer was pasted, and has no wrong letters
  const OF_KIND = { e: 0.9, l: 1, r: 0.75, i: 0.55 };
  // The share of a page's title that is asked for, weighed by rarity: the page whose title is the question must win.
  const shareOfTitle = (page, asked) => {
    const own = [...new Set(words(pages[page][1]))].filter(word => numberOf.has(word));
    const sum = list => list.reduce((all, word) => all + rarity(numberOf.get(word)), 0);
    return sum(own.filter(word => asked.has(word))) / (1 + sum(own));
  };
  const rank = query => {
    const asked = tokens(query), score = new Float64Array(pages.length), stands = new Map();
    asked.forEach((token, place) => {
      const isTyped = place === asked.length - 1 && /[\p{L}\p{N}_]$/u.test(query), best = new Map();
      const isChinese = CHINESE.test(token.raw), isPart = isChinese && !others.has(token.raw);
      const weight = saysLittle.has(token.whole) || isPart ? 0.15 : isChinese ? 0.6 : 1; // a part may be no word
      for (const [number, likeness] of alternatives(token, isTyped, asked.length <= LONG)) {
        const rare = rarity(number);
        stands.set(terms[number], Math.max(stands.get(terms[number]) ?? 0, weight * rare * likeness));
        for (const [page, level] of lists[number]) best.set(page, Math.max(best.get(page) ?? 0, rare * likeness * level));
      }
      for (const [page, value] of best) score[page] += weight * value;
    });
    for (const [page, likeness] of likeSymptoms(query)) if (likeness > 0.7) score[page] *= 1 + 2 * likeness;
    const said = new Set(words(query)), results = [...score.entries()].filter(([, value]) => value)
      .map(([page, value]) => ({ page, score: value * OF_KIND[pages[page][3]] * (1 + shareOfTitle(page, said)) }))
      .sort((one, other) => other.score - one.score);
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
      if (numbers.length && numbers.every(number => lists[number ?? -1]?.some(([at, level]) => at === page && level > 2)))
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
  const PYTHONS = /has no attribute|No module named|unexpected keyword|is not defined/; // here the names tell messages apart
  const fixed = text => (PYTHONS.test(text) ? text : OWN.reduce((left, own) => left.replace(own, " "), text))
    .toLowerCase().match(/[a-z_]+/g) ?? [];
  const pairs = list => new Set(list.slice(1).map((word, at) => `${list[at]} ${word}`));
  const having = new Map(); // a pair of words: the templates that have it
  const templates = messages.map(([page, text, part], number) => {
    const own = pairs(fixed(text));
    for (const pair of own) having.set(pair, [...having.get(pair) ?? [], number]);
    return { page, part, size: own.size, isPythons: PYTHONS.test(text) };
  });
  // A paste in lines. One with the name of an error begins with it; ranks, borders and marks of a test are left out.
  const NAME = /(?<![\w.])[\w.]*(?:Error|Warning|Exception): /, LINES = new RegExp(`[\n⏎]|(?=${NAME.source})`), BEFORE = /^[\s>│|]*(?:E  +|\[[\w.: ]+\]:?)?[\s│|]*|[\s│|]+$/g;
  const linesOf = paste => paste.split(LINES).map(line => line.slice(0, 1000).replace(BEFORE, "")).filter(Boolean);
  const LAUNCHERS = /CalledProcessError|ChildFailedError|resource_tracker|leaked semaphore/; // that another program ended, and not why
  const SHORT = 5; // pairs
  // The message of a paste that says most, with its page: each line is tried, and each two, for a long one may be broken.
  const explain = lines => {
    let best = null;
    const tried = lines.flatMap((line, at) => [line, `${line} ${lines[at + 1] ?? ""}`]).map(line => line.replace(NAME, ""));
    for (const line of new Set(tried)) {
      const asked = pairs(fixed(line).slice(0, 80)), common = new Map();
      for (const pair of asked) for (const number of having.get(pair) ?? []) common.set(number, (common.get(number) ?? 0) + 1);
      const beginning = having.get([...asked][0]) ?? [];
      const named = new Set(common.size ? likeSymptoms(line).filter(([, likeness]) => likeness > 0.9).map(([page]) => page) : []);
      for (const [number, times] of common) {
        const { page, part, size, isPythons } = templates[number];
        // all of a message of Python; a few words are enough if they begin a line, or are most of it
        if (times < (isPythons ? size : size > SHORT ? 3 : Math.max(2, size - 1))) continue;
        if (size <= SHORT && times < 0.8 * asked.size && !beginning.includes(number)) continue;
        // a paste may end early, or go on with advice: whichever of the two is covered better
        const covered = Math.max((size < 3 ? 0.8 : 1) * times / size, 0.95 * times / asked.size) + times / 100;
        if (covered <= 0.6) continue;
        // of two that raise it, the one that calls it its own; many lessons raise a message that a page about errors explains
        const isNamed = named.has(page) || pages[page][1].startsWith(line.slice(0, 40));
        const value = (covered + isNamed / 100) * (isNamed || page in fixes ? 1 : 0.7) - number / 1e6;
        if (value > (best?.value ?? 0)) best = { page, part, value, line };
      }
    }
    if (!best) return null;
    const { page, part, line } = best, isOwn = part === undefined;
    const [heading, anchor = slug(heading)] = part > 0 ? pages[page][4][part - 1] : ["", part || ""];
    return { page, isOwn, line, section: anchor && { heading, anchor }, fix: isOwn ? fixes[page] ?? "" : "" };
  };
  // A card for what looks like a message, and pages with their sections. `stands`: the words to mark, with their weight.
  // Beside a card, fewer pages are enough. `isUnknown`: it has the name of an error, and no page explains it.
  const find = (query, most = 12) => {
    const lines = linesOf(query).filter(line => !LAUNCHERS.test(line)), errors = lines.filter(line => NAME.test(line));
    const card = explain(lines), isUnknown = !card && errors.length > 0;
    const asked = card ? card.line : isUnknown ? errors.map(line => line.replace(NAME, "")).join(" ") : query;
    const { results, stands } = rank(asked.slice(0, 400));
    const shown = results.filter(({ page }) => page !== card?.page).slice(0, card ? Math.min(most, 5) : most);
    return { card, isUnknown, stands, results: shown.map(result => ({ ...result, section: sectionOf(result.page, stands, query) })) };
  };
  return { find, words, pages };
})();
