// The sidebar shows the page that the reader is on. The two drawers of a narrow window, by keyboard: furo opens them with labels
// of hidden boxes, which no key reaches. Each label becomes a button that says whether its drawer is open. Without this script
// the labels are there, for a pointer.
(() => {
  const here = document.querySelector(".sidebar-tree .current-page"), tree = document.querySelector(".sidebar-scroll");
  if (here && tree) tree.scrollTo({ top: tree.scrollTop + here.getBoundingClientRect().top - innerHeight / 3, behavior: "instant" });
  const drawers = { __navigation: ".sidebar-drawer", __toc: ".toc-drawer" };
  for (const [id, drawer] of Object.entries(drawers)) {
    const box = document.getElementById(id), inside = document.querySelector(drawer);
    if (!box || !inside) continue;
    const buttons = [...document.querySelectorAll(`.page label[for="${id}"]`)].map(label => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: label.className });
      button.ariaLabel = box.ariaLabel;
      button.append(...label.childNodes);
      label.replaceWith(button);
      return button;
    });
    const say = () => buttons.forEach(button => { button.ariaExpanded = box.checked; });
    const turn = open => {
      box.checked = open;
      say();
      if (open) [...inside.querySelectorAll("a, input")].find(stop => stop.checkVisibility())?.focus({ preventScroll: true });
      else buttons.find(button => button.checkVisibility())?.focus();
    };
    buttons.forEach(button => { button.onclick = () => turn(!box.checked); });
    box.addEventListener("change", say); // the veil over the page, which closes the drawer, is a label too
    inside.addEventListener("keydown", event => { if (event.key === "Escape" && box.checked) turn(false); });
    say();
  }
})();
