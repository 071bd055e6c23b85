// Swagger UI has a dark theme of its own, under a class: it follows the one that our pages have.
(() => {
  const root = document.documentElement;
  const follow = () => root.classList.toggle("dark-mode", root.getAttribute("data-bs-theme") === "dark");
  follow();
  new MutationObserver(follow).observe(root, { attributeFilter: ["data-bs-theme"] });
})();
