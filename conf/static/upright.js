// Graph figures on a phone: data flows from top to bottom, since from left to right most run out of the window. Each part of a
// drawing says where it stands then (conf/graphs/draw.py). Without this script the reader scrolls sideways.
if (matchMedia("(max-width: 46em)").matches) {
  const PLACES = { svg: "viewBox", g: "transform", path: "d", polygon: "points" };
  for (const svg of document.querySelectorAll("svg.graph[data-upright]")) {
    for (const part of [svg, ...svg.querySelectorAll("[data-upright]")]) {
      const place = part.dataset.upright, [x, y] = place.split(" ");
      if (part.localName === "text") {
        part.setAttribute("x", x);
        part.setAttribute("y", y);
      } else part.setAttribute(PLACES[part.localName], place);
    }
    const [, , width, height] = svg.dataset.upright.split(" ");
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.classList.add("graph-upright");
  }
}
