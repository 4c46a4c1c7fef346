// Follows the file: where it has grown, the page is asked for anew and its content exchanged.
const EVERY = 2000;
const state = document.querySelector("#state");

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

async function follow() {
  try {
    const answer = await fetch("api/step");
    const found = await answer.json();
    if (!answer.ok) {
      say(`Expected ${found.expected}; got ${found.got}.`);
    } else {
      const shown = document.querySelector("main [data-readings]");
      const same =
        Number(shown?.dataset.readings) === found.readings &&
        Number(shown?.dataset.step ?? 0) === found.step;
      if (!same) {
        const fresh = await fetch(location.href);
        const page = new DOMParser().parseFromString(await fresh.text(), "text/html");
        const content = fresh.ok ? page.querySelector("main") : null;
        const focused = document.activeElement?.getAttribute("href");
        if (content) document.querySelector("main").replaceWith(content);
        if (focused) {
          for (const link of document.querySelectorAll("main a")) {
            if (link.getAttribute("href") === focused) link.focus();
          }
        }
      }
      say("This page follows the file.");
    }
    document.body.classList.toggle("gone", !answer.ok);
  } catch {
    document.body.classList.add("gone");
    say("attlas has ended: what is here is what it showed last.");
  }
  setTimeout(follow, EVERY);
}

setTimeout(follow, EVERY);
