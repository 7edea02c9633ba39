// Graph figures on a phone: data flows from top to bottom, since from left to right most run out of the window. Each part of a
// drawing says where it stands then (conf/graphs/draw.py). Without this script the reader scrolls sideways.
if (matchMedia("(max-width: 46em)").matches) {
  const PLACES = { svg: "viewBox", g: "transform", path: "d", polygon: "points" };
  for (const svg of document.querySelectorAll("svg.graph[data-upright]")) {
    for (const part of [svg, ...svg.querySelectorAll("[data-upright]")]) {
      const place = part.dataset.upright, [x, y] = place.split(" ");
      const set = part.localName === "text" ? { x, y } : { [PLACES[part.localName]]: place };
      for (const name in set) part.setAttribute(name, set[name]);
    }
    svg.dataset.upright.split(" ").slice(2).forEach((size, at) => svg.setAttribute(["width", "height"][at], size));
    svg.classList.add("graph-upright");
  }
}
