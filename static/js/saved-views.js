// A view is saved as the address has it now: the filter changes it without loading the page.
for (const form of document.querySelectorAll("form[data-view]")) {
  form.addEventListener("submit", () => (form.elements.query.value = location.search.slice(1)));
}
