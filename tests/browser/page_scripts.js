// What is asked of an open page, as functions that run in it; page_scripts.py calls them.
// Those that measure a page give sentences for what is wrong, none if nothing is.

const findStyle = box => getComputedStyle(box);
const findAll = (part, inside = document) => [...inside.querySelectorAll(part)];

// -- Loading --------------------------------------------------------------------------------------

// How far text and boxes moved while the page loaded, and which.
function listShifts() {
  return new Promise(resolve => {
    const shifts = [];
    const name = ({node}) => node?.nodeType === 1 ? node.tagName.toLowerCase() + "." + node.className : String(node?.nodeName);
    new PerformanceObserver(list => {
      for (const entry of list.getEntries()) shifts.push([entry.value, entry.sources.map(name).join(", ")]);
    }).observe({type: "layout-shift", buffered: true});
    document.fonts.ready.then(() => requestAnimationFrame(() => setTimeout(() => resolve(shifts), 50)));
  });
}

// Folds and long tables are opened. Rows that Chromium lays out only near the window have estimated heights until then, which
// would let their links overlap those of other rows: all are laid out.
function unfold() {
  findAll("details").forEach(fold => { fold.open = true });
  findAll(".long-table + button").forEach(button => button.click());
  const late = findAll("*").filter(box => findStyle(box).contentVisibility === "auto");
  late.forEach(box => { box.style.contentVisibility = "visible" });
}

// What opens fades in, and a theme's colors arrive by transitions. All that ends is brought to its end: what is measured
// on the way depends on how busy the machine is.
function settle() {
  return new Promise(resolve => {
    const ends = moving => Number.isFinite(moving.effect?.getComputedTiming().endTime);
    const frames = (count, then) => requestAnimationFrame(() => count > 1 ? frames(count - 1, then) : then());
    const settleRounds = rounds => {
      const moving = document.getAnimations().filter(ends);
      moving.forEach(animation => animation.finish());
      moving.length && rounds ? frames(2, () => settleRounds(rounds - 1)) : resolve();
    };
    frames(3, () => settleRounds(50));
  });
}

// -- The first screen -----------------------------------------------------------------------------

// Of a lesson, as it is loaded: its first figure, graph or table begins in the first three screens. What is folded away does not
// count, and what is smaller than a line or two is an icon.
function findLateFigure(height) {
  const shown = findAll("article :is(figure, svg, img, table, .wide)") // a printed table that is wide
    .filter(box => box.checkVisibility()).map(box => box.getBoundingClientRect())
    .filter(({width, height}) => width >= 60 && height >= 30);
  const top = Math.round(Math.min(...shown.map(box => box.top + scrollY)));
  return top < 3 * height ? [] : ["the first figure or table begins at " + (shown.length ? top + " px" : "no place")];
}

// Of a page about an error, as it is loaded: what to change stands whole in the first screen.
function findLateFix(height) {
  const diff = document.querySelector("article .in-short .highlight-diff");
  const end = diff ? Math.round(diff.getBoundingClientRect().bottom + scrollY) : "no place";
  return end <= height ? [] : ["the change that mends the error ends at " + end];
}

// Of a page about an error: its message is not cut off, whatever the window's width.
function findCutMessage() {
  const output = document.querySelector("article .sphx-glr-script-out pre");
  return output && output.scrollWidth <= output.clientWidth + 1 ? [] : ["the message is not shown whole"];
}

// -- Text and boxes -------------------------------------------------------------------------------

// Children of a section, and so body text: captions, tables and footers are other kinds of text.
function listSmallTexts(smallest) {
  const small = findAll("section > p:not(.claims, .leads-on), section > :is(ul, ol) li > p")
    .filter(text => parseFloat(findStyle(text).fontSize) < smallest);
  // Words of a drawing, as large as they are shown. On a phone it gives way a little before it scrolls.
  const least = innerWidth > 736 ? 12 : 11;
  small.push(...findAll(".graph text").filter(text =>
    text.checkVisibility() && parseFloat(findStyle(text).fontSize) * text.getScreenCTM().a < least - 0.05));
  return small.map(text => findStyle(text).fontSize + ": " + text.textContent.trim().slice(0, 60));
}

// What scrolls and cannot be reached with a keyboard.
function listUnreachable() {
  return findAll("article *").filter(box => {
    const {overflowX, overflowY} = findStyle(box);
    const scrolls = (overflowX == "auto" || overflowX == "scroll") && box.scrollWidth > box.clientWidth + 1
      || (overflowY == "auto" || overflowY == "scroll") && box.scrollHeight > box.clientHeight + 1;
    return scrolls && box.clientWidth > 0 && box.tabIndex < 0;
  }).map(box => box.outerHTML.slice(0, 100));
}

// What of the page runs out of the window, with its first five elements that do. The theme's column scrolls by itself, so
// the document stays as wide as the window whatever runs out of it. Numbers and names in a table may be scrolled sideways,
// sentences may not.
function listTooWide() {
  const wide = [document.documentElement, ...findAll(".content, .colwidths-given:not(.numbers)")]
    .filter(box => box.scrollWidth > box.clientWidth + 1);
  return wide.length === 0 ? [] : [
    ...wide.map(box => [box.localName, ...box.classList].join(".") + ` is ${box.scrollWidth} px wide in ${innerWidth}`),
    ...findAll("article *")
      .filter(box => box.getBoundingClientRect().right > innerWidth + 1 && !box.closest("[tabindex='0']"))
      .slice(0, 5).map(box => box.outerHTML.slice(0, 100))];
}

// Of an example's page: each cell of code can be copied, and no output.
function listCopyButtons() {
  const hasButton = block => block.querySelector("button.copybtn") !== null;
  const isOutput = block => block.closest(".sphx-glr-script-out") !== null;
  const blocks = findAll("div.highlight");
  const outputs = blocks.filter(isOutput), cells = blocks.filter(block => !isOutput(block));
  const shown = block => block.textContent.trim().slice(0, 60);
  return [
    ...(cells.length ? [] : ["there is no code"]),
    ...(outputs.length ? [] : ["there is no output"]),
    ...cells.filter(block => !hasButton(block)).map(block => "code without a button: " + shown(block)),
    ...outputs.filter(hasButton).map(block => "output with a button: " + shown(block))];
}

// What stands in the same place of each sheet of paper.
function listStamps() {
  return findAll("*", document.body)
    .filter(box => ["fixed", "sticky"].includes(findStyle(box).position) && box.checkVisibility())
    .map(box => box.outerHTML.slice(0, 80));
}

// -- Colors ---------------------------------------------------------------------------------------

const listChannels = color => (color.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);

// The contrast of two colors that `getComputedStyle` gave, as WCAG 2.2 defines it.
function findContrast(...colors) {
  const luminance = color => listChannels(color).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const [dark, light] = colors.map(luminance).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

// The contrast of a button's icon.
function findIconContrast(button) {
  return findContrast(findStyle(button).color, findStyle(button).backgroundColor);
}

// axe does not know what is behind a text of a drawing. A card's text stands on the card, the rest on the page.
function listPaleGraphs(least) {
  const isClear = color => color === "none" || listChannels(color)[3] === 0;
  const behind = text => {
    const card = text.closest(".g-card")?.querySelector("rect");
    if (card && !isClear(findStyle(card).fill)) return findStyle(card).fill;
    for (let box = text.closest("svg"); box; box = box.parentElement)
      if (!isClear(findStyle(box).backgroundColor)) return findStyle(box).backgroundColor;
    return "rgb(255, 255, 255)";
  };
  return findAll(".graph text").flatMap(text => {
    const found = findContrast(findStyle(text).fill, behind(text));
    return found < least ? [found.toFixed(2) + ": " + text.getAttribute("class") + " " + text.textContent] : [];
  });
}

// axe cannot tell what color lies behind a text if it is an image, which the band behind a line of code is. Every class
// that the style of code knows is looked at, not only those of this page.
function listPaleTokens(code, least) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(--color-highlight-on-target)";
  const band = findStyle(probe).color;
  const classes = [..."bcgklmnopsvw"].flatMap(a => ["", ..."123abcdefhilmnoprstuvwxd"].map(b => a + b));
  return classes.flatMap(name => {
    const token = code.appendChild(document.createElement("span"));
    token.className = name;
    const color = findStyle(token).color, found = findContrast(color, band);
    token.remove();
    return found < least ? [`${name}: ${color}, ${found.toFixed(2)}`] : [];
  });
}

// The colors of every element that a page shows. Copy buttons, clear until they are pointed at, keep the old theme's color.
function listLooks() {
  return findAll("*", document.body).map(box => {
    if (!box.checkVisibility({opacityProperty: true})) return box.localName;
    const {color, fill, backgroundColor, display, filter} = findStyle(box);
    return [box.localName, color, fill, backgroundColor, display, filter].join();
  });
}

// The colors that matter in the first graph of a page.
function listGraphColors() {
  return {
    name: findStyle(document.querySelector(".graph text.g-name")).fill,
    card: findStyle(document.querySelector(".graph .g-card rect")).fill,
    page: findStyle(document.body).backgroundColor,
  };
}

// -- Graphs ---------------------------------------------------------------------------------------

// The lines of a block of code behind which a band lies, by their text, from where the bands are.
function listLitLines(block) {
  const style = findStyle(block), lines = block.textContent.trimEnd().split("\n");
  const top = parseFloat(style.paddingTop), high = (block.clientHeight - 2 * top) / lines.length;
  if (style.backgroundImage === "none") return [];
  const places = style.backgroundPosition.split(", "), sizes = style.backgroundSize.split(", ");
  return lines.filter((line, at) => places.some((place, number) => {
    const from = parseFloat(place.split(" ")[1]), to = from + parseFloat(sizes[number].split(" ")[1]);
    const middle = top + (at + 0.5) * high;
    return from < middle && middle < to;
  }));
}

// Every end of an edge that is not on the border of its card, with its distance from there in pixels of the window.
function listLooseEnds(figure) {
  const cards = new Map(findAll("[data-card] rect", figure).map(card => [card.parentElement.dataset.card, card]));
  return findAll("[data-edge]", figure).flatMap(edge => {
    const path = edge.querySelector("path"), toWindow = path.getScreenCTM();
    const begin = path.getPointAtLength(0).matrixTransform(toWindow);
    const tip = edge.querySelector("polygon").points[0].matrixTransform(toWindow);
    const far = (point, card) => {
      const {left, right, top, bottom} = card.getBoundingClientRect();
      const out = [left - point.x, point.x - right, top - point.y, point.y - bottom];
      return Math.abs(Math.max(...out));
    };
    return [far(begin, cards.get(edge.dataset.from)), far(tip, cards.get(edge.dataset.to))];
  }).filter(distance => distance > 2);
}

// Whether an edge's arrowhead is at its tail, where a gradient goes.
function isTurned(edge) {
  const card = edge.ownerSVGElement.querySelector(`[data-card="${edge.dataset.from}"] rect`).getBBox();
  const [x] = edge.querySelector("polygon").getAttribute("points").split(",");
  return Math.abs(card.x + card.width - x) < 3;
}

// Values and gradients of a figure in all their digits, by the names of the cards.
function listNumbers(figure) {
  const {notes, computed: {values, gradients}} = figure.graph;
  return Object.fromEntries(Object.entries(notes).map(([key, note]) => [note[0][1], [values[key][0], gradients[key]?.[0]]]));
}

// -- What a reader does ---------------------------------------------------------------------------

// Selects these words, as a mouse or Shift with the arrow keys does.
function selectWords(words) {
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(words);
    if (at < 0) continue;
    getSelection().setBaseAndExtent(walker.currentNode, at, walker.currentNode, at + words.length);
    return;
  }
}

function pasteText(box, text) {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text", text);
  box.dispatchEvent(new ClipboardEvent("paste", {clipboardData, cancelable: true, bubbles: true}));
}

// What is shown of each entry of a list that is not filtered out, its definition too.
function listEntries(entries) {
  return findAll(entries).filter(one => !one.hidden).map(head => {
    let text = head.textContent, next = head;
    while (head.localName === "dt" && (next = next.nextElementSibling)?.localName === "dd") text += next.textContent;
    return text.toLowerCase();
  });
}

// Where the focus is: its left and right edge, and whether anything shows it.
function findFocus() {
  const {left, right} = document.activeElement.getBoundingClientRect();
  return [left, right, document.activeElement.checkVisibility({visibilityProperty: true})];
}

// What the tensor beside its memory shows, and the calls that can be made.
function readCells() {
  const box = document.querySelector(".memory-cells");
  const rows = table => findAll(`.cells-${table} tr`, box).map(row => [...row.cells].map(cell => +cell.textContent));
  return {
    facts: findAll(".cells-facts code", box).map(fact => fact.textContent),
    numbers: rows("tensor"), memory: rows("memory")[0], said: box.querySelector(".cells-said").textContent,
    read: findAll(".cells-memory td.read", box).map(cell => cell.cellIndex),
    calls: findAll("button[data-call]:enabled", box).map(button => button.dataset.call),
  };
}

// Puts an exercise in place of the first one of the page, as it would be with another answer.
function askAnother([answer, script]) {
  return new Promise(done => {
    const form = document.querySelector("form.predict"), fresh = form.cloneNode(true);
    const said = JSON.parse(fresh.querySelector("script").textContent);
    fresh.querySelector("script").textContent = JSON.stringify({...said, answer: [answer]});
    form.replaceWith(fresh);
    document.head.append(Object.assign(document.createElement("script"), {src: script, onload: done}));
  });
}
