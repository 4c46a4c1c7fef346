import { openIn } from "./document.ts";
import { embedded } from "./embedded.ts";
import { TABS } from "./tabs.tsx";

// A file of one's own, which holds its data.
const door = embedded(document);
Object.assign(window, { attlas: { door } }); // the numbers, for a console
if (location.hash === "" && door.link !== "") history.replaceState(null, "", door.link);
openIn(document.body, door, TABS);
