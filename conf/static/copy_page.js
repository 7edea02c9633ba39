// The button beside the link to a page's Markdown copies it, to be pasted into a note or a chat (conf/atlas/markdown_copies.py).
(() => {
  const link = document.querySelector(".page-markdown"), button = document.querySelector(".copy-page");
  if (!button) return;
  if (!navigator.clipboard || location.protocol === "file:") return button.remove();
  button.addEventListener("click", async () => {
    const text = fetch(link.href).then(answer => answer.text());
    await navigator.clipboard.writeText(await text).then(() => { button.textContent = "Copied"; }, () => { location = link.href; });
    setTimeout(() => { button.textContent = "Copy page"; }, 2000);
  });
})();
