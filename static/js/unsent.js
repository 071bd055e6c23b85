// Puts the input back into the form that waited for a sign-in. Hidden fields stay as the new page has them.
export function restoreUnsent() {
  const unsent = document.getElementById("unsent");
  const form = unsent && [...document.querySelectorAll("form[method=post]")].find((each) => actionOf(each) === unsent.dataset.action);
  if (!form) return;
  const sent = [...unsent.querySelectorAll("data")];
  for (const field of form.querySelectorAll("input:not([type=hidden]), textarea, select")) {
    const values = sent.filter((each) => each.dataset.name === field.name).map((each) => each.value);
    if (field.type === "checkbox" || field.type === "radio") field.checked = values.includes(field.value);
    else if (values.length) field.value = values[0];
  }
  form.closest("details")?.setAttribute("open", "");
  const dialog = form.closest("dialog");
  if (dialog && !dialog.open) dialog.showModal();
  form.scrollIntoView({ block: "center" });
}

const actionOf = (form) => new URL(form.getAttribute("action") || location.href, location.href).pathname;
