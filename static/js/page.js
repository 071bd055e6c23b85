// What every page runs: times that stay current, the live link, parts that follow it, and small comforts.
import { startTimes } from "./times.js";
import { startLink } from "./live.js";
import { startParts } from "./parts.js";
import { startDialogs } from "./dialogs.js";
import { startComforts } from "./comforts.js";
import { startFlash } from "./flash.js";
import { restoreUnsent } from "./unsent.js";

startTimes();
startFlash();
startComforts();
startDialogs();
restoreUnsent();
startParts();
startLink();
