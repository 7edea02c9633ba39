// Code and graph: a card that is asked or played lights the lines that made it, and a line lights the cards that it made.
// Which line that is comes from the build (conf/atlas/figures.py). Nothing scrolls by itself.
(() => {
  const makes = []; // { card, pre, first, last }: a card, and the lines of a block that made it
  let played = [], pointed = null;
  // A band is a part of the block's background: the code itself, which one may select and copy, stays as it is.
  const heightOf = pre => {
    const { paddingTop, paddingBottom } = getComputedStyle(pre), lines = pre.textContent.trimEnd().split("\n").length;
    const top = parseFloat(paddingTop);
    return { top, line: (pre.clientHeight - top - parseFloat(paddingBottom)) / lines };
  };
  const paint = () => {
    const lit = pointed ?? played;
    for (const pre of new Set(makes.map(({ pre }) => pre))) {
      const bands = lit.filter(made => made.pre === pre), { top, line } = bands.length ? heightOf(pre) : {};
      pre.style.backgroundImage = bands.map(() => "var(--line-edge), var(--line-lit)").join();
      pre.style.backgroundSize = bands.map(({ first, last }) => [3, 9999].map(wide => `${wide}px ${(last - first + 1) * line}px`)).join();
      pre.style.backgroundPosition = bands.map(({ first }) => Array(2).fill(`0 ${top + (first - 1) * line}px`)).join();
    }
  };
  const point = wanted => {
    if (`${wanted?.map(made => makes.indexOf(made))}` === `${pointed?.map(made => makes.indexOf(made))}`) return;
    pointed = wanted;
    for (const made of makes) made.card.classList.toggle("g-made", !!wanted?.includes(made));
    paint();
  };
  const follow = event => {
    const pre = event.currentTarget, { top, line } = heightOf(pre);
    const at = Math.floor((event.clientY - pre.getBoundingClientRect().top - pre.clientTop - top) / line) + 1;
    const found = makes.filter(made => made.pre === pre && made.first <= at && at <= made.last);
    point(found.length ? found : null);
  };
  for (const script of document.querySelectorAll(".graph-figure > div[id] ~ script")) {
    const figure = script.parentElement.querySelector("div[id]"), own = new Map();
    for (const [key, [block, first, last]] of Object.entries(JSON.parse(script.textContent).made_by)) {
      const pre = document.querySelector(`#${block} pre`);
      own.set(key, { card: figure.querySelector(`[data-card="${key}"]`), pre, first, last });
      pre.classList.add("line-by-line");
      pre.onpointermove = pre.onpointerdown = follow;
      pre.onpointerleave = event => { if (event.pointerType === "mouse") point(null); };
    }
    makes.push(...own.values());
    figure.addEventListener("graph-cards", ({ detail: { keys, back } }) => {
      played = keys.map(key => own.get(key)).filter(made => made);
      for (const { pre } of played) pre.classList.toggle("line-back", back);
      paint();
    });
  }
  addEventListener("pointerdown", event => { if (!event.target.closest?.(".line-by-line")) point(null); });
})();
