// What is known of plots, and what came since: only the newest instants are fetched again.
const AGAIN = 9; // of the last instants: samples come some time after them, up to two minutes of 15 s steps

// From when on it is to be asked for, in seconds since the epoch.
export function since(known) {
  return Math.floor(known.times[Math.max(0, known.times.length - AGAIN)]);
}

// Grows by what came since, in place. False: it does not fit, and all of it is to be fetched.
// `most`: how many instants there may be. The first of those that came is known already, and for what is drawn by how
// it differs from the instant before, only there.
export function extend(known, fresh, most) {
  const from = known.times.indexOf(fresh.times[0]);
  if (from < 0 || fresh.step_s !== known.step_s || !fits(known, fresh)) return false;
  const kept = from + 1, left = Math.max(0, kept + fresh.times.length - 1 - most);
  known.times = [...known.times.slice(left, kept), ...fresh.times.slice(1)];
  for (const plot of known.plots) {
    const came = fresh.plots.find(({ key }) => key === plot.key);
    for (const line of plot.lines) {
      const values = came?.lines.find((each) => isSame(each, line))?.values ?? Array(fresh.times.length).fill(null);
      line.values = [...line.values.slice(left, kept), ...values.slice(1)];
    }
  }
  const [first, second = Infinity] = [known.times[0], fresh.times[1]].map((at) => at && at * 1000);
  const isOld = ({ at }) => Date.parse(at) < second;
  known.marks = [...known.marks.filter((mark) => isOld(mark) && Date.parse(mark.at) >= first), ...fresh.marks.filter((mark) => !isOld(mark))];
  known.silent_since = fresh.silent_since;
  return true;
}

function fits(known, fresh) {
  return fresh.plots.every((came) => {
    const plot = known.plots.find(({ key }) => key === came.key);
    return plot && plot.left_out === came.left_out && came.lines.every((line) => plot.lines.some((each) => isSame(each, line)));
  });
}

function isSame(one, other) {
  return one.name === other.name && one.uuid === other.uuid && one.metric === other.metric;
}
