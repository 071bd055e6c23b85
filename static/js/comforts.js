// Copy buttons, why a locked button is locked (fingers do not hover), and keys for what can also be clicked.
export function startComforts() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
    const locked = event.target.closest("[aria-disabled='true'][aria-describedby]");
    const why = locked && document.getElementById(locked.getAttribute("aria-describedby"));
    if (why) why.isShown = !why.classList.toggle("visually-hidden"); // also when its part is fetched again: see parts.js
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.removeAttribute("open");
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return undefined;
    if (event.key === "?") return document.getElementById("help")?.showModal();
    const control = document.querySelector(`[data-shortcut="${CSS.escape(event.key)}"]`);
    if (!control) return undefined;
    event.preventDefault();
    if (control.type === "checkbox" || control.tagName === "A" || control.dataset.dialog) control.click();
    else control.focus();
    return undefined;
  });
}

async function copy(button) {
  const was = button.title;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.title = "Copied";
    button.classList.add("is-ok");
  } catch {
    button.title = "The browser does not let pages copy here: select the text instead.";
    button.classList.add("is-bad");
  }
  setTimeout(() => {
    button.title = was;
    button.classList.remove("is-ok", "is-bad");
  }, 1500);
}
