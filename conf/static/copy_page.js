// A button beside the link to a page's Markdown copies it, to be pasted into a note or a chat (conf/atlas/markdown_copies.py).
(() => {
  const link = document.querySelector(".page-markdown");
  if (!link || !navigator.clipboard || location.protocol === "file:") return;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy-page", textContent: "Copy page" });
  button.addEventListener("click", async () => {
    const text = fetch(link.href).then(answer => answer.text());
    await navigator.clipboard.writeText(await text).then(() => { button.textContent = "Copied"; }, () => { location = link.href; });
    setTimeout(() => { button.textContent = "Copy page"; }, 2000);
  });
  link.before(button);
})();
