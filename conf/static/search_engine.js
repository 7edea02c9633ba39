// Which pages answer a question, best first; and which page explains a pasted message. It reads the index that the build makes
// (conf/atlas/search_index.py) and knows nothing of the page that it runs on.
window.atlasSearch = (() => {
  const { pages, words: vocabulary, found, levels, patterns, stems, dropped, weak, synonyms, messages, fixes, rows } = window.atlasSearchIndex;
  const terms = [];
  for (const word of vocabulary.split(" ")) terms.push((terms.at(-1) ?? "").slice(0, parseInt(word[0], 36)) + word.slice(1));
  const numberOf = new Map(terms.map((term, number) => [term, number]));
  const saysNothing = new Set(dropped.split(" ")), saysLittle = new Set(weak.split(" "));
  // A function that makes what it has made before only once: a word or a heading is looked at again at each key.
  const remember = (make, made = new Map()) => key => made.get(key) ?? made.set(key, make(key)).get(key);
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
  const partsOf = remember(token => {
    if (CHINESE.test(token)) return [
      ...cut(token, Math.min(2, token.length)).map(pair => ({ raw: pair, whole: pair, parts: [] })),
      ...[3, 4, 5].flatMap(length => cut(token, length)).filter(word => others.has(word)).map(word => ({ raw: word, whole: "", parts: [] })),
    ];
    const pieces = JOINED.test(token) ? token.match(PIECE) ?? [] : [];
    const parts = pieces.length > 1 || token.includes("_") ? pieces.map(piece => piece.toLowerCase()).filter(counts) : [];
    const raw = token.toLowerCase();
    return [{ raw, whole: counts(raw) ? stem(raw) : "", parts: parts.map(stem) }];
  });
  const tokens = text => (text.match(TOKEN) ?? []).flatMap(partsOf);
  const words = remember(text => tokens(text).flatMap(({ whole, parts }) => whole ? [whole, ...parts] : parts));
  // -- What the index says of a word ------------------------------------------------------------------
  // The pages of all words one after the other, and where those of each word begin. A root of the rarity that BM25 has: with the
  // whole of it one rare word outweighs a question.
  const on = new Uint16Array(levels.length), starts = new Uint32Array(terms.length + 1), rarity = new Float64Array(terms.length);
  for (let at = 0, page = 0, place = 0, number = 0; at < found.length; at++) {
    const code = found.charCodeAt(at);
    if (code > 32) on[place++] = page += code - 35;
    else { // a space behind a word, which so many pages have
      rarity[number] = Math.log(1 + pages.length / (place - starts[number])) ** 0.45;
      page = 0, starts[++number] = place;
    }
  }
  // How much of a word each of them has, and the sentences with it, of those that people say who want the page: 100 a page at most.
  const level = new Uint8Array(on.length), sentences = new Array(terms.length), lengths = new Float64Array(100 * pages.length);
  for (let at = 0, place = -1, number = 0; at < levels.length; at++) {
    const code = levels.charCodeAt(at), sentence = 100 * on[place] + code - 58;
    if (code < 58) {
      level[++place] = code - 48;
      if (place === starts[number + 1]) number++;
    } else {
      (sentences[number] ??= []).push(sentence);
      lengths[sentence] += rarity[number];
    }
  }
  const numbers = text => new Set(words(text).map(word => numberOf.get(word)).filter(number => number !== undefined));
  const titles = pages.map(([, title]) => [...numbers(title)]);
  // The words from which this is one letter away: missing, too many or wrong, or two neighbors swapped.
  const LETTERS = [..."abcdefghijklmnopqrstuvwxyz_0123456789"];
  const nearly = word => [...word, ""].flatMap((letter, at) => {
    const head = word.slice(0, at), tail = word.slice(at + 1);
    return [head + tail, head + tail.slice(0, 1) + letter + tail.slice(1),
      ...LETTERS.flatMap(other => [head + other + tail, head + other + letter + tail])];
  });
  const beginWith = beginning => { // 40 terms at most: they are sorted
    const first = terms.findIndex(term => term >= beginning);
    return terms.slice(first, first + 40).filter(term => term.startsWith(beginning));
  };
  // What a token finds: how much of it each page has, and the terms that stand for it, each with its weight.
  const lookUp = isTyped => remember(token => {
    const { raw, whole, parts } = token, own = numberOf.get(whole), isChinese = CHINESE.test(raw);
    const list = own === undefined ? [] : [[own, 1]];
    const add = (others, likeness) => list.push(...others.filter(other => numberOf.has(other)).map(other => [numberOf.get(other), likeness]));
    if (own === undefined) {
      add(parts, 0.8);
      if (whole.length > 3) for (const word of new Set([whole, raw])) add(nearly(word), 0.7);
    }
    add(others.get(whole || raw) ?? [], isChinese ? 1 : 0.5); // the site is in English
    if (isTyped && (whole || raw.length === 1))
      for (const beginning of new Set([raw, whole || raw])) add(beginWith(beginning), own === undefined ? 0.8 : 0.3);
    const isPart = isChinese && !others.has(raw), best = new Float64Array(pages.length); // a part may be no word
    const weight = saysLittle.has(whole) ? 0.3 : isPart ? 0.15 : isChinese ? 0.9 : 1;
    const stands = list.map(([number, likeness]) => {
      const value = weight * rarity[number] * likeness;
      for (let at = starts[number]; at < starts[number + 1]; at++) best[on[at]] = Math.max(best[on[at]], value * level[at]);
      return [terms[number], value];
    });
    return { best, stands };
  });

  // -- Questions ----------------------------------------------------------------------------------------
  const OF_KIND = { e: 0.9, l: 1, r: 0.75, i: 0.55 };
  const lookUps = [lookUp(false), lookUp(true)], sum = numbers => numbers.reduce((all, number) => all + rarity[number], 0);
  const rank = query => {
    const asked = tokens(query), score = new Float64Array(pages.length), stands = new Map();
    asked.forEach((token, place) => {
      const isTyped = place === asked.length - 1 && /[\p{L}\p{N}_]$/u.test(query), found = lookUps[Number(isTyped)](token);
      for (const [term, value] of found.stands) stands.set(term, Math.max(stands.get(term) ?? 0, value));
      found.best.forEach((value, page) => { score[page] += value; });
    });
    // The share of a page's title that is asked for: the page whose title is the question must win. A term in Chinese is in the glossary.
    const said = numbers(query), alike = near(query), share = title => sum(title.filter(number => said.has(number))) / (3 + sum(title));
    const hasTerm = page => CHINESE.test(query) && pages[page][4].some(([heading]) => heading.endsWith(` ${query.trim()}`));
    const results = [...score.keys()].filter(page => score[page]).map(page => ({ page, score: score[page] * OF_KIND[pages[page][3]]
      * (1 + 2 * share(titles[page])) * (1 + 5 * alike[page] ** 4) * (hasTerm(page) ? 4 : 1) }));
    return { results: results.sort((one, other) => other.score - one.score), stands };
  };
  // How nearly a page's own sentences say the same, by page: the cosine of the words, weighed by rarity.
  const near = text => {
    const common = new Map(), most = new Float64Array(pages.length);
    let length = 0;
    for (const word of new Set(words(text))) if (!saysLittle.has(word)) {
      const number = numberOf.get(word), rare = rarity[number] ?? 2; // a word that no page has
      length += rare;
      for (const sentence of sentences[number] ?? []) common.set(sentence, (common.get(sentence) ?? 0) + rare);
    }
    for (const [sentence, value] of common) {
      const page = Math.floor(sentence / 100);
      most[page] = Math.max(most[page], value / Math.sqrt(length * lengths[sentence]));
    }
    return most;
  };
  const slug = heading => heading.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  // The row of a long list that the question names: torch.linalg.qr is linalg.qr there.
  const rowOf = (page, query) => {
    for (const [name] of query.toLowerCase().matchAll(/[\w.]*\w/g)) {
      const heading = name.replace(/^(torch\.)?(nn\.functional\.|tensor\.)?/, "");
      const numbers = words(heading).map(word => numberOf.get(word));
      const isOn = number => on.subarray(starts[number], starts[number + 1]).some((at, more) => at === page && level[starts[number] + more] > 2);
      if (numbers.length && numbers.every(isOn))
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
    for (const pair of own) (having.get(pair) ?? having.set(pair, []).get(pair)).push(number);
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
      let alike;
      for (const [number, times] of common) {
        const { page, part, size, isPythons } = templates[number];
        // all of a message of Python; a few words are enough if they begin a line, or are most of it
        if (times < (isPythons ? size : size > SHORT ? 3 : Math.max(2, size - 1))) continue;
        if (size <= SHORT && times < 0.8 * asked.size && !beginning.includes(number)) continue;
        // a paste may end early, or go on with advice: whichever of the two is covered better
        const covered = Math.max((size < 3 ? 0.8 : 1) * times / size, 0.95 * times / asked.size) + times / 100;
        if (covered <= 0.6) continue;
        // of two that raise it, the one that calls it its own; many lessons raise a message that a page about errors explains
        alike ??= near(line);
        const isNamed = alike[page] > 0.95 || pages[page][1].startsWith(line.slice(0, 40));
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
