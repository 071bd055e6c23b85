// Loaded before the first paint: the page must never flash in the theme that was not chosen.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // storage may be forbidden: then the system decides
    }
  };
  const apply = () => root.setAttribute("data-bs-theme", chosen() || (system.matches ? "dark" : "light"));
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const next = root.getAttribute("data-bs-theme") === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", next);
    } catch {
      // not kept: it holds for this page only
    }
    root.setAttribute("data-bs-theme", next);
    document.dispatchEvent(new Event("theme:changed"));
  });
})();
