// What was just done is said, and goes by itself; what was refused stays until somebody closes it.
const SHOWN_MS = 8000;

export function startFlash() {
  for (const message of document.querySelectorAll(".message")) {
    if (message.classList.contains("is-error")) addClose(message);
    else setTimeout(() => message.remove(), SHOWN_MS);
  }
  // Back again, from a cache of the browser's: that was then.
  addEventListener("pageshow", ({ persisted }) => persisted && document.querySelectorAll(".message").forEach((each) => each.remove()));
}

function addClose(message) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "close";
  button.addEventListener("click", () => message.remove());
  message.append(" ", button);
}
