// A box that scrolls, and no other, is a stop of the Tab key, and says on which sides there is more, where atlas.css lets it fade out.
// What is in a box can grow long after the page has loaded: a font arrives, a fold opens, a table is filled.
(() => {
  const kinds = "pre, .graph-scroll, .plot-scroll, .output_html, .cell_output, .table-wrapper, div.math";
  const boxes = [...document.querySelectorAll(kinds)];
  // A formula scrolls sideways alone. What its tall signs paint below its box is no more to read.
  const goesDown = box => !box.matches("div.math");
  const sides = box => {
    const { scrollLeft, scrollTop, scrollWidth, scrollHeight, clientWidth, clientHeight } = box;
    return Object.entries({
      left: scrollLeft > 1, right: scrollLeft + clientWidth < scrollWidth - 1, below: goesDown(box) && scrollTop + clientHeight < scrollHeight - 1,
    }).filter(([, more]) => more).map(([side]) => side).join(" ");
  };
  const write = ([box, more, scrolls]) => {
    if (more !== (box.dataset.more ?? "")) {
      if (more) box.dataset.more = more;
      else delete box.dataset.more;
    }
    if (scrolls && !box.hasAttribute("tabindex")) box.tabIndex = 0;
    else if (!scrolls && box.tabIndex === 0) box.removeAttribute("tabindex");
  };
  // All are read before one is written: between the two the browser would lay out the page for each box.
  const mark = boxes => boxes.map(box => [
    box, sides(box), box.scrollWidth > box.clientWidth + 1 || (goesDown(box) && box.scrollHeight > box.clientHeight + 1),
  ]).forEach(write);
  const sizes = new ResizeObserver(changes => mark([...new Set(changes.map(change => change.target.closest(kinds)))].filter(Boolean))); // not what was taken out
  // A box keeps its size when what is in it grows.
  for (const box of boxes) {
    for (const part of [box, ...box.children]) sizes.observe(part);
    box.addEventListener("scroll", () => mark([box]), { passive: true });
  }
  // On a phone the cells of a wide row stand below each other (atlas.css): each says of which column it is.
  for (const cell of document.querySelectorAll("table:not(.numbers) > colgroup:has(> col:nth-child(3)) ~ tbody td:not(:first-child)"))
    if (cell.textContent) cell.dataset.label = cell.closest("table").rows[0].cells[cell.cellIndex].textContent;
  // The one font that a page loads is that of formulas. A fold that is closed would be laid out to be measured.
  const isOpenFormula = box => !goesDown(box) && box.checkVisibility({ contentVisibilityAuto: true });
  document.fonts.addEventListener("loadingdone", () => mark(boxes.filter(isOpenFormula)));
})();
