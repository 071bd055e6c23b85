// Stages added to, moved in and removed from a draft. The order on the page is the order they go in: their fields are
// numbered by it (Django's formsets).
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-add-stage]")) addStage();
  const remove = event.target.closest("[data-remove-stage]");
  if (remove) removeStage(remove.closest("fieldset"));
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

// What comes to its place has the focus, as the one that was added does.
function removeStage(stage) {
  const next = stage.nextElementSibling ?? stage.previousElementSibling;
  stage.remove();
  numberStages();
  (next ? firstField(next) : document.querySelector("[data-add-stage]")).focus();
  tell(`${nameOf(stage)} is removed.`);
}

// For who does not see it move.
function tellPlace(stage) {
  const stages = [...stage.parentElement.children];
  tell(`${nameOf(stage)} is stage ${stages.indexOf(stage) + 1} of ${stages.length}.`);
}

function nameOf(stage) {
  return stage.querySelector("input[name$='-name']").value || "The stage";
}

function firstField(stage) {
  return stage.querySelector("input:not([type='hidden'])");
}

function tell(words) {
  document.getElementById("announcer").textContent = words;
}

function addStage() {
  const stages = document.getElementById("stages");
  const blank = document.getElementById("blank-stage").content.firstElementChild.cloneNode(true);
  stages.append(blank);
  numberStages();
  firstField(blank).focus();
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
