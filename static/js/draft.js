// Stages added to, moved in and removed from a draft. The order on the page is the order they go in: their fields are
// numbered by it (Django's formsets).
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-add-stage]")) addStage();
  const remove = event.target.closest("[data-remove-stage]");
  if (remove) {
    remove.closest("fieldset").remove();
    numberStages();
  }
  const move = event.target.closest("[data-move-stage]");
  if (move) moveStage(move);
});

// A browser that fills a page again as it was left may bring an older number of them.
document.getElementById("draft")?.addEventListener("submit", numberStages);

function moveStage(button) {
  const stage = button.closest("fieldset");
  if (button.dataset.moveStage === "up") stage.previousElementSibling?.before(stage);
  else stage.nextElementSibling?.after(stage);
  numberStages();
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
  stages.append(blank);
  numberStages();
  blank.querySelector("input:not([type='hidden'])").focus();
}

function numberStages() {
  const stages = [...document.getElementById("stages").children];
  document.querySelector("[data-stages]").value = stages.length;
  for (const [at, stage] of stages.entries()) {
    for (const element of stage.querySelectorAll("[name], [id], [for]")) {
      for (const name of ["name", "id", "for"]) {
        const value = element.getAttribute(name);
        if (value) element.setAttribute(name, value.replace(/^stage-(\d+|__prefix__)-/, `stage-${at}-`));
      }
    }
  }
}
