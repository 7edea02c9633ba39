// A box that scrolls must be reachable by keyboard, and only such a box should stop the Tab key.
(() => {
  const boxes = "pre, .graph-scroll, .plot-scroll, .output_html, .cell_output, .table-wrapper, math[display=block], div.math";
  const mark = () => {
    for (const box of document.querySelectorAll(boxes)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1 || box.matches(".operators");
      if (scrolls && !box.hasAttribute("tabindex")) box.tabIndex = 0;
      else if (!scrolls && box.tabIndex === 0) box.removeAttribute("tabindex");
    }
  };
  addEventListener("load", mark);
  addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true);
})();
