// Graph figures on a phone, and the one beside the front page's code: data flows from top to bottom, since from left to right most run
// out of the room. Each part of a drawing says where it stands then (conf/drawgrad/drawing.py). Without this script the reader scrolls sideways.
(() => {
  const PLACES = { svg: "viewBox", g: "transform", path: "d", polygon: "points" };
  const within = matchMedia("(max-width: 46em)").matches ? "" : ".expression ";
  for (const svg of document.querySelectorAll(`${within}svg.graph[data-upright]`)) {
    for (const part of [svg, ...svg.querySelectorAll("[data-upright]")]) {
      const place = part.dataset.upright, [x, y] = place.split(" ");
      const set = part.localName === "text" ? { x, y } : { [PLACES[part.localName]]: place };
      for (const name in set) part.setAttribute(name, set[name]);
    }
    svg.dataset.upright.split(" ").slice(2).forEach((size, at) => svg.setAttribute(["width", "height"][at], size));
    svg.classList.add("graph-upright");
  }
})();
