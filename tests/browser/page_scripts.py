"""What is asked of an open page, as scripts that run in it. Each gives sentences for what is wrong, none if nothing is."""

from __future__ import annotations

#: How far text and boxes moved while the page loaded, and which.
SHIFTS = """() => new Promise(resolve => {
  const shifts = [];
  const name = ({node}) => node?.nodeType === 1 ? node.tagName.toLowerCase() + "." + node.className : String(node?.nodeName);
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) shifts.push([entry.value, entry.sources.map(name).join(", ")]);
  }).observe({type: "layout-shift", buffered: true});
  document.fonts.ready.then(() => requestAnimationFrame(() => setTimeout(() => resolve(shifts), 50)));
})"""

#: Folds are opened. Rows that Chromium lays out only near the
#: window have estimated heights until then, which would let their links overlap those of other rows: all are laid out.
UNFOLD = """() => {
  document.querySelectorAll("details").forEach(fold => { fold.open = true });
  const late = [...document.querySelectorAll("*")].filter(box => getComputedStyle(box).contentVisibility === "auto");
  late.forEach(box => { box.style.contentVisibility = "visible" });
}"""

#: What opens fades in, and a theme's colors arrive by transitions. All that ends is brought to its end: what is measured on
#: the way depends on how busy the machine is.
SETTLE = """() => new Promise(resolve => {
  const ends = moving => Number.isFinite(moving.effect?.getComputedTiming().endTime);
  const frames = (count, then) => requestAnimationFrame(() => count > 1 ? frames(count - 1, then) : then());
  const settle = rounds => {
    const moving = document.getAnimations().filter(ends);
    moving.forEach(animation => animation.finish());
    moving.length && rounds ? frames(2, () => settle(rounds - 1)) : resolve();
  };
  frames(3, () => settle(50));
})"""

#: Of a lesson, as it is loaded: its first figure, graph or table begins in the first screen. What is folded away does not
#: count, and what is smaller than a line or two is an icon.
LATE_FIGURE = """height => {
  const shown = [...document.querySelectorAll("article :is(figure, svg, img, table)")]
    .filter(box => box.checkVisibility()).map(box => box.getBoundingClientRect())
    .filter(({width, height}) => width >= 60 && height >= 30);
  const top = Math.round(Math.min(...shown.map(box => box.top + scrollY)));
  return top < height ? [] : ["the first figure or table begins at " + (shown.length ? top + " px" : "no place")];
}"""

#: Of a page about an error, as it is loaded: what to change stands whole in the first screen.
LATE_FIX = """height => {
  const diff = document.querySelector("article .in-short .highlight-diff");
  const end = diff ? Math.round(diff.getBoundingClientRect().bottom + scrollY) : "no place";
  return end <= height ? [] : ["the change that mends the error ends at " + end];
}"""

#: Of a page about an error: its message is not cut off, whatever the window's width.
CUT_MESSAGE = """() => {
  const output = document.querySelector("article .sphx-glr-script-out pre");
  return output && output.scrollWidth <= output.clientWidth + 1 ? [] : ["the message is not shown whole"];
}"""

# Children of a section, and so body text: captions, tables and footers are other kinds of text.
SMALL_TEXT = """smallest => {
  const small = [...document.querySelectorAll("section > p:not(.claims, .names-used, .leads-on), section > :is(ul, ol) li > p")]
    .filter(text => parseFloat(getComputedStyle(text).fontSize) < smallest);
  return small.map(text => getComputedStyle(text).fontSize + ": " + text.textContent.trim().slice(0, 60));
}"""

#: What scrolls and cannot be reached with a keyboard.
UNREACHABLE = """() => [...document.querySelectorAll("article *")].filter(box => {
  const {overflowX, overflowY} = getComputedStyle(box);
  const scrolls = (overflowX == "auto" || overflowX == "scroll") && box.scrollWidth > box.clientWidth + 1
    || (overflowY == "auto" || overflowY == "scroll") && box.scrollHeight > box.clientHeight + 1;
  return scrolls && box.clientWidth > 0 && box.tabIndex < 0;
}).map(box => box.outerHTML.slice(0, 100))"""

# The theme's column scrolls by itself, so the document stays as wide as the window whatever runs out of it. Numbers and
# names in a table may be scrolled sideways, sentences may not.
TOO_WIDE = """() => {
  const wide = [document.documentElement, ...document.querySelectorAll(".content, .colwidths-given:not(.numbers)")]
    .filter(box => box.scrollWidth > box.clientWidth + 1);
  return wide.length === 0 ? [] : [
    ...wide.map(box => [box.localName, ...box.classList].join(".") + ` is ${box.scrollWidth} px wide in ${innerWidth}`),
    ...[...document.querySelectorAll("article *")]
      .filter(box => box.getBoundingClientRect().right > innerWidth + 1 && !box.closest("[tabindex='0']"))
      .slice(0, 5).map(box => box.outerHTML.slice(0, 100))];
}"""

#: For the beginning of a script: ``contrast`` of two colors that ``getComputedStyle`` gave, as WCAG 2.2 defines it.
CONTRAST = """
  const channels = color => (color.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const luminance = color => channels(color).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const contrast = (...colors) => {
    const [dark, light] = colors.map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
"""

# axe does not know what is behind a text of a drawing. A card's text stands on the card, the rest on the page.
PALE_GRAPHS = (
    f"""least => {{{CONTRAST}"""
    + """
  const isClear = color => color === "none" || channels(color)[3] === 0;
  const behind = text => {
    const card = text.closest(".g-card")?.querySelector("rect");
    if (card && !isClear(getComputedStyle(card).fill)) return getComputedStyle(card).fill;
    for (let box = text.closest("svg"); box; box = box.parentElement)
      if (!isClear(getComputedStyle(box).backgroundColor)) return getComputedStyle(box).backgroundColor;
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll(".graph text")].flatMap(text => {
    const found = contrast(getComputedStyle(text).fill, behind(text));
    return found < least ? [found.toFixed(2) + ": " + text.getAttribute("class") + " " + text.textContent] : [];
  });
}"""
)

#: Of an example's page: each cell of code can be copied, and no output.
COPY_BUTTONS = """() => {
  const hasButton = block => block.querySelector("button.copybtn") !== null;
  const isOutput = block => block.closest(".sphx-glr-script-out") !== null;
  const blocks = [...document.querySelectorAll("div.highlight")];
  const outputs = blocks.filter(isOutput), cells = blocks.filter(block => !isOutput(block));
  const shown = block => block.textContent.trim().slice(0, 60);
  return [
    ...(cells.length ? [] : ["there is no code"]),
    ...(outputs.length ? [] : ["there is no output"]),
    ...cells.filter(block => !hasButton(block)).map(block => "code without a button: " + shown(block)),
    ...outputs.filter(hasButton).map(block => "output with a button: " + shown(block))];
}"""
