// Native dialogs: opened by a button, closed by Escape, the backdrop or a button.
export function startDialogs() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) return opener.getAttribute("aria-disabled") === "true" ? undefined : open(opener);
    if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
    if (event.target.tagName === "DIALOG") event.target.close();
    return undefined;
  });
  for (const dialog of document.querySelectorAll("dialog[data-open]")) dialog.showModal();
}

function open(opener) {
  const dialog = document.getElementById(opener.dataset.dialog);
  if (!dialog) return;
  for (const [name, value] of Object.entries(opener.dataset)) {
    const field = dialog.querySelector(`[data-fill="${name}"]`);
    if (!field) continue;
    if (field.tagName === "FORM") field.action = value;
    else if ("value" in field && field.tagName !== "BUTTON") field.value = value;
    else field.textContent = value;
  }
  dialog.showModal();
}
