// The stand-alone page: the side panel in a page of its own, at the server's address.
import { ServerLink } from "./server_link.js";
import { SidePanel } from "./side_panel.js";

/** The token against forged requests, which Jupyter's server keeps in a cookie of its own origin. */
const xsrf = () => /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? "";

const link = new ServerLink({
  url: new URL("api/panels", document.baseURI).href,
  request: (url, init) => fetch(url, { ...init, credentials: "same-origin", headers: { ...init.headers, "X-XSRFToken": xsrf() } }),
});
// A token that was given in the address is in a cookie by now, and stays out of the history and of screenshots.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
const title = document.title;
let here = decodeURI(location.hash.slice(1));
const panel = new SidePanel({
  link,
  onwaiting: (number) => {
    document.title = number ? `(${number}) ${title}` : title;
  },
  onplace: (place) => {
    here = place;
    if (decodeURI(location.hash.slice(1)) !== place) history.pushState(null, "", `#${encodeURI(place)}`);
  },
});
addEventListener("popstate", () => {
  const place = decodeURI(location.hash.slice(1));
  if (place !== here) panel.visit(place);
});
document.querySelector("main").append(panel.element);
panel.start(here);
