// figure.html?PAGE#NAME shows one figure of a page alone: to save it as SVG or PNG, to link to it, to embed it, for slides. The figure is
// taken from its page, with the scripts that let a reader step through it.
(async () => {
  const root = new URL("..", document.currentScript.src), main = document.querySelector(".figure-page");
  const page = new URL(location.search.slice(1) || "index.html", root), name = location.hash.slice(1);
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  if (!main || !page.href.startsWith(root.href)) return;
  const link = make("a", { href: `${page.href}#${name}`, textContent: "its page" });
  main.querySelector(".figure-of").append(link);
  const answer = await fetch(page).catch(() => undefined); // in a folder, a browser fetches nothing
  const source = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = source && source.getElementById(name);
  if (!found) return;
  const figure = found.closest("figure, .plot-scroll"), svg = figure.querySelector("svg.graph, svg.plot");
  for (const other of figure.querySelectorAll(".figure-alone, .headerlink, details")) other.remove();
  link.textContent = source.querySelector("h1").firstChild.textContent;
  main.querySelector("h1").textContent = figure.querySelector(".caption-text")?.textContent ?? link.textContent;
  main.querySelector(".figure-place").replaceChildren(figure);
  document.documentElement.classList.remove("no-js");
  for (const script of source.querySelectorAll("script[src*='/graph_player'], script[src*='/graph_live']")) {
    document.head.append(make("script", { src: new URL(script.getAttribute("src"), page).href, async: false }));
  }

  const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor", "visibility", "display"];
  const size = () => svg.getBoundingClientRect();
  const standAlone = () => { // a copy with the colors of the theme written into it
    const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((one, at) => { for (const look of LOOKS) to[at].style.setProperty(look, getComputedStyle(one).getPropertyValue(look)); });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    for (const side of ["width", "height"]) { copy.setAttribute(side, size()[side]); copy.style[side] = `${size()[side]}px`; }
    return new XMLSerializer().serializeToString(copy);
  };
  const save = (blob, ending) => {
    const address = URL.createObjectURL(blob);
    make("a", { href: address, download: `${name}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  };
  const savePng = async () => {
    const image = make("img", { src: `data:image/svg+xml,${encodeURIComponent(standAlone())}` }), SCALE = 3;
    await image.decode();
    const canvas = make("canvas", { width: SCALE * size().width, height: SCALE * size().height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => save(blob, "png"));
  };
  const add = (textContent, act) => {
    const button = make("button", { type: "button", textContent });
    button.addEventListener("click", act);
    main.querySelector(".figure-tools").append(button, " ");
  };
  add("Save as SVG", () => save(new Blob([standAlone()], { type: "image/svg+xml" }), "svg"));
  add("Save as PNG", savePng);
  main.querySelector(".figure-embed").hidden = false;
  main.querySelector(".figure-embed input").value = `<iframe src="${location.href}" width="800" height="600"></iframe>`;
})();
