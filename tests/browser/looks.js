// Marks up to `enough` elements of each look that has not passed as often, asks axe about them, and says which looks passed.
// axe.py says what a look is, and calls this. Everything is read before anything is marked: a mark in between would have
// Chromium compute all styles anew.
async ({rules, passed, enough}) => {
  const styles = new Map(), paints = new Map(), layers = new Map(), frames = new Map();
  const style = box => styles.get(box) ?? styles.set(box, getComputedStyle(box)).get(box);
  const isClear = color => /^(transparent|rgba\(.*, 0\))$/.test(color);
  const isPicture = box => box.matches("img, svg, canvas, video, iframe, object");

  // What an element paints below its text, or does to all that is in it; nothing for most.
  const paint = box => {
    if (!paints.has(box)) {
      const {backgroundColor, backgroundImage, opacity, filter, backdropFilter, mixBlendMode} = style(box);
      const isPlain = isClear(backgroundColor) && backgroundImage === "none" && opacity === "1" && filter === "none"
        && backdropFilter === "none" && mixBlendMode === "normal" && !isPicture(box);
      const says = [backgroundColor, backgroundImage, opacity, filter, backdropFilter, mixBlendMode];
      paints.set(box, isPlain ? "" : (isPicture(box) ? box.localName : "") + says);
    }
    return paints.get(box);
  };
  // The element and what it is in, as far as they paint.
  const painted = box => {
    if (!layers.has(box)) {
      const above = box.parentElement ? painted(box.parentElement) : [];
      layers.set(box, paint(box) ? [...above, box] : above);
    }
    return layers.get(box);
  };
  const isWithin = (inner, outer) =>
    inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const isApart = (one, other) =>
    one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;

  const all = [...document.body.querySelectorAll("*")], places = new Map();
  for (const box of all) if (box.checkVisibility({visibilityProperty: true})) places.set(box, box.getBoundingClientRect());
  const isRoot = box => box === document.body || box === document.documentElement;
  // The box around an element that cuts off what runs out of it.
  const frame = box => {
    if (box === null || isRoot(box)) return null;
    if (!frames.has(box)) {
      const cuts = style(box).overflowX !== "visible" || style(box).overflowY !== "visible";
      frames.set(box, cuts ? box : frame(box.parentElement));
    }
    return frames.get(box);
  };
  const cut = (place, box) => {
    const edge = frame(box.parentElement) ? frame(box.parentElement).getBoundingClientRect() : place;
    const [left, top] = [Math.max(place.left, edge.left), Math.max(place.top, edge.top)];
    const [right, bottom] = [Math.min(place.right, edge.right), Math.min(place.bottom, edge.bottom)];
    return left < right && top < bottom ? [{left, top, right, bottom}] : [];
  };
  // What is shown of an element's own text, line by line; a block is wider than its words.
  const lines = new Map(), range = document.createRange();
  const linesOf = box => {
    if (!lines.has(box)) {
      const nodes = [...box.childNodes].filter(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
      const found = nodes.flatMap(node => { range.selectNodeContents(node); return [...range.getClientRects()]; });
      lines.set(box, (found.length ? found : [places.get(box)]).flatMap(line => cut(line, box)));
    }
    return lines.get(box);
  };
  const isSeen = box => painted(box).every(other => style(other).opacity !== "0");
  const byTop = (one, other) => places.get(one).top - places.get(other).top;
  const painters = [...places.keys()].filter(box => paint(box) && isSeen(box)).sort(byTop);
  const tallest = Math.max(0, ...painters.map(box => places.get(box).height));

  // What lies over or under an element though it is not around it: a label on a picture, a box that was moved.
  const strangers = box => {
    const place = places.get(box), found = new Set();
    let low = 0, high = painters.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places.get(painters[middle]).top < place.top - tallest) low = middle + 1; else high = middle;
    }
    for (; low < painters.length && places.get(painters[low]).top < place.bottom; low++) {
      const other = painters[low];
      if (other.contains(box) || box.contains(other)) continue;
      if (linesOf(box).every(line => isApart(line, places.get(other)))) continue;
      found.add(style(other).position + style(other).zIndex + painted(other).map(paint));
    }
    return [...found].sort();
  };
  const holds = (other, box) => isRoot(other) || linesOf(box).every(line => isWithin(line, places.get(other)));
  const behind = box => [
    ...painted(box).map(other => paint(other) + (holds(other, box) ? "" : " in part")),
    "over or under:", ...strangers(box)];

  const isDisabled = box => box.closest(":disabled, [aria-disabled=true]") !== null || box.closest("label")?.control?.disabled;
  // The contrast that WCAG asks for depends on whether text is large, and else not on its size.
  const size = ({fontSize, fontWeight}) => {
    const points = parseFloat(fontSize) * 0.75;
    return points === 0 ? "none" : points >= (parseFloat(fontWeight) >= 700 ? 14 : 18) ? "large" : "small";
  };
  const text = box => {
    const {color, fill, textShadow, webkitTextFillColor, webkitTextStroke, textIndent, position, zIndex} = style(box);
    const part = box.closest("article, aside, header, footer, nav")?.className;
    return [part, color, fill, size(style(box)), textShadow, webkitTextFillColor, webkitTextStroke, textIndent,
      isDisabled(box) ? "disabled" : "", position, zIndex, ...behind(box)];
  };
  // axe decides on no text of one character or of ASCII's signs alone, nor on what no scrolling brings into the window. Of a
  // graph it knows neither fill nor card: page_scripts.PALE_GRAPHS measures those. What a box around it cuts off axe seldom can
  // tell, so that is asked last.
  const words = box => [...box.childNodes].map(node => node.nodeType === Node.TEXT_NODE ? node.data : "").join("").trim();
  const isText = box => /[^\s!-/:-@[-`{-~]/.test(words(box)) && box.textContent.trim().length > 1 && !box.matches(".graph text");
  const isCut = box => {
    const around = frame(box.parentElement);
    return around !== null && !isWithin(places.get(box), around.getBoundingClientRect());
  };
  const isOnPage = box => {
    const place = places.get(box);
    const left = Math.min(place?.left, (frame(box.parentElement) ?? box).getBoundingClientRect().left);
    return place && place.right > 0 && place.bottom + scrollY > 0 && left < innerWidth;
  };
  // Words of code of one class look alike within one box, if nothing lies over or under the block of code: one stands for all.
  const alone = new Map(), told = new Map();
  const isAlone = code => {
    if (!alone.has(code)) {
      const place = places.get(code);
      const isStranger = other => !other.contains(code) && !code.contains(other) && !isApart(place, places.get(other));
      alone.set(code, place !== undefined && !painters.some(isStranger));
    }
    return alone.get(code);
  };
  const isToldAlready = box => {
    const code = box.matches("span[class]:not([style])") && box.closest("pre");
    if (!code || isCut(box) || !isAlone(code)) return false;
    const classes = told.get(box.parentElement) ?? told.set(box.parentElement, new Set()).get(box.parentElement);
    return classes.size === classes.add(box.className).size;
  };
  const wholeFirst = boxes => [...boxes.filter(box => !isCut(box)), ...boxes.filter(isCut)];

  // A link stands out, or not, from the text of the block that it is in.
  const block = link => {
    let box = link.parentElement;
    while (box.parentElement && /^(inline|contents|ruby)/.test(style(box).display)) box = box.parentElement;
    return box;
  };
  const length = words => words.replace(/\s+/g, " ").trim().length;
  const inLinks = new Map();
  // As axe's isInTextBlock: more of the block's text is outside of links than in them. Where a line break divides a block, axe
  // looks at a part of it, and decides itself. Of a link that is an icon it says nothing.
  const isInText = link => {
    const box = block(link);
    if (!inLinks.has(box)) {
      const inside = [...box.querySelectorAll("a[href]")].reduce((sum, other) => sum + length(other.textContent), 0);
      inLinks.set(box, box.querySelector("br, hr") !== null || length(box.textContent) > 2 * inside);
    }
    return inLinks.get(box);
  };
  const shape = box => {
    const {color, display, fontSize, fontWeight, fontStyle, fontFamily, textDecoration, border, outline, opacity} = style(box);
    return [color, display, fontSize, fontWeight, fontStyle, fontFamily, textDecoration, border, outline, opacity];
  };
  const pseudo = link => ["::before", "::after"].map(part => getComputedStyle(link, part).content);
  const link = box => [...shape(box), ...pseudo(box), ...behind(box), "in", ...shape(block(box)), ...behind(block(box))];

  const isLink = box => box.matches("a[href]") && length(box.textContent) > 0;

  const candidates = {
    "color-contrast": [wholeFirst(all.filter(box => isOnPage(box) && isText(box) && !isToldAlready(box))), text],
    "link-in-text-block": [wholeFirst(all.filter(box => isOnPage(box) && isLink(box) && isInText(box))), link],
  };
  const marked = {}, good = {};
  for (const [rule, [boxes, describe]] of Object.entries(candidates)) {
    const times = new Map(Object.entries(passed[rule]));
    marked[rule] = new Map();
    good[rule] = [];
    for (const box of boxes) {
      const look = describe(box).join();
      times.set(look, (times.get(look) ?? 0) + 1);
      if (times.get(look) <= enough) marked[rule].set(box, look);
    }
  }
  const asked = Object.fromEntries(Object.entries(marked).map(([rule, boxes]) => [rule, boxes.size]));
  const boxes = Object.values(marked).flatMap(found => [...found.keys()]);
  if (boxes.length === 0) return {violations: [], good, asked};
  for (const box of boxes) box.dataset.look = "";
  const options = {runOnly: {type: "rule", values: rules}, resultTypes: ["violations", "incomplete"], elementRef: true};
  const {violations, incomplete} = await axe.run({include: [["[data-look]"]]}, options);
  for (const {id, nodes} of [...violations, ...incomplete]) for (const {element} of nodes) marked[id].delete(element);
  for (const id in good) good[id].push(...marked[id].values()); // passed, or such that the rule says nothing of it
  for (const {nodes} of violations) for (const node of nodes) delete node.element;
  for (const box of boxes) delete box.dataset.look;
  return {violations, good, asked};
}
