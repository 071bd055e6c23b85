// Passkeys: a button with data-passkey asks the browser, and sends its answer with the form.
for (const button of document.querySelectorAll("[data-passkey]")) {
  button.addEventListener("click", () => answer(button.form, button.dataset.passkey === "create"));
}

async function answer(form, isNew) {
  const options = JSON.parse(form.dataset.options).publicKey;
  try {
    const credential = isNew
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  } catch (error) {
    const name = error instanceof TypeError ? "This browser has no passkeys for pages." : "The browser got no answer from a passkey.";
    form.querySelector("[role=alert]").textContent = `${name} (${error.name})`;
  }
}
