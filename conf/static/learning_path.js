// While a reader is on a learning path, Next leads to its next page. It ends with the tab, or at the second page in a row beside it.
(() => {
  const KEY = "atlas-path", links = path => [...path.querySelectorAll(".card-title a")];
  for (const path of document.querySelectorAll("ol.path")) for (const link of links(path)) link.addEventListener("click", () => {
    const title = path.closest("section").querySelector("h2").firstChild.textContent;
    const pages = [...links(path).map(({ href, textContent }) => [href, textContent]), [location.href, "All learning paths"]];
    sessionStorage.setItem(KEY, JSON.stringify({ title, pages }));
  });
  const { title, pages, isBeside } = JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  if (!pages) return;
  const at = pages.findIndex(([href]) => href === location.href.split(/[?#]/)[0]), card = document.querySelector(".next-page");
  if (at < 0 && isBeside) return sessionStorage.removeItem(KEY);
  sessionStorage.setItem(KEY, JSON.stringify({ title, pages, isBeside: at < 0 }));
  if (!pages[at + 1] || at < 0 || !card) return;
  [card.href, card.querySelector(".title").textContent] = pages[at + 1];
  card.querySelector(".context span").replaceChildren("Next in ", Object.assign(document.createElement("em"), { textContent: title }));
})();
