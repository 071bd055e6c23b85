// Stages added to, moved in and removed from a draft. The order on the page is the order they go in.
let made = 0;

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-add-stage]")) addStage();
  const remove = event.target.closest("[data-remove-stage]");
  if (remove) remove.closest("fieldset").remove();
  const move = event.target.closest("[data-move-stage]");
  if (move) moveStage(move);
});

function moveStage(button) {
  const stage = button.closest("fieldset");
  if (button.dataset.moveStage === "up") stage.previousElementSibling?.before(stage);
  else stage.nextElementSibling?.after(stage);
  button.focus();
  tellPlace(stage);
}

// For who does not see it move.
function tellPlace(stage) {
  const stages = [...stage.parentElement.children];
  const name = stage.querySelector("input[name$='-name']").value || "The stage";
  document.getElementById("announcer").textContent = `${name} is stage ${stages.indexOf(stage) + 1} of ${stages.length}.`;
}

function addStage() {
  const stages = document.getElementById("stages");
  const blank = document.getElementById("blank-stage").content.firstElementChild.cloneNode(true);
  made += 1;
  for (const element of blank.querySelectorAll("[name], [id], [for]")) {
    for (const name of ["name", "id", "for"]) {
      const value = element.getAttribute(name);
      if (value) element.setAttribute(name, value.replace("stage-NEW-", `stage-n${made}-`));
    }
    if (element.value === "NEW") element.value = `n${made}`;
  }
  stages.append(blank);
  blank.querySelector("input:not([type='hidden'])").focus();
}
